#include "launcher/core/hints.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>
#include <vector>

#include "launcher/core/text_lines.h"

namespace ddp::launcher {
namespace {

using rendezvous::Failure;
using rendezvous::FailureKind;
using Lines = std::vector<std::string_view>;

// The first one of the table that any line has counts, so the special stands before the general.
struct Known {
  Sign sign;
  std::string_view advice;
  bool in_last_words = false;  // programs say it and live on: earlier it explains nothing
};

constexpr std::string_view kGpuMemory =
    "a GPU's memory is used up: use smaller batches or activation checkpointing; nvidia-smi shows "
    "whether something else uses that GPU";
constexpr std::string_view kAddressInUse =
    "the program opens a port that is taken (ss -ltnp shows by whom): choose another one, or leave "
    "it to ddplaunch (init_method env://)";
constexpr std::string_view kSharedMemory =
    "shared memory is full (df -h /dev/shm): give the container more (docker run --shm-size=8g, or "
    "--ipc=host), or use fewer DataLoader workers";
constexpr std::string_view kOneGpu =
    "two ranks use one GPU: let each choose its own by LOCAL_RANK (torch.cuda.set_device) and "
    "start at most one worker for each GPU (--nproc-per-node=gpu)";
constexpr std::string_view kNoSuchGpu =
    "there are fewer GPUs than workers: see CUDA_VISIBLE_DEVICES and nvidia-smi, or use "
    "--nproc-per-node=gpu";
constexpr std::string_view kOneRank =
    "two processes claim one rank: does the program start processes that inherit RANK, or is "
    "something else using this job's MASTER_ADDR and MASTER_PORT?";
constexpr std::string_view kNccl =
    "NCCL names the call that failed with NCCL_DEBUG=WARN in the environment, and how it came "
    "to it with NCCL_DEBUG=INFO";
constexpr std::string_view kNcclInterface =
    "NCCL found no network interface that it may use: NCCL_SOCKET_IFNAME names it, ip addr lists "
    "them";
constexpr std::string_view kTimeout =
    "some rank did not take part in a collective: the one that is stuck is to blame, not the one "
    "that gave up waiting (py-spy dump --pid shows where it is)";
constexpr std::string_view kFiles = "too many files are open: raise the limit (ulimit -n)";
constexpr std::string_view kProcesses =
    "no further process or thread may be started: raise the limit (ulimit -u), or the container's "
    "limit of processes";
constexpr std::string_view kLocked =
    "memory can't be locked for the network: raise the limit (ulimit -l unlimited)";
constexpr std::string_view kDisk =
    "a disk is full: df -h shows which; TMPDIR moves temporary files";
constexpr std::string_view kHostMemory =
    "this host or its container has no memory left (or ulimit -v is set): use less, for example "
    "fewer DataLoader workers";
constexpr std::string_view kDriver =
    "the GPU driver is older than this CUDA needs: nvidia-smi shows the newest that it supports";
constexpr std::string_view kArchitecture =
    "the program was not built for this GPU: install a build that supports its architecture";
constexpr std::string_view kDeviceAssert =
    "with CUDA_LAUNCH_BLOCKING=1 in the environment the traceback names the operation that failed";
constexpr std::string_view kNewerSystem =
    "the program was built on a newer system than this one: build it here, or use its container";
constexpr std::string_view kLineEnds =
    "the script's first line ends in a carriage return: save it with Unix line ends (dos2unix)";
constexpr std::string_view kInterpreter =
    "the interpreter that a script's first line names isn't here";
constexpr std::string_view kPermission =
    "the user who runs ddplaunch may not use what is named above: ls -l shows who may";

constexpr std::array kKnown = {
    Known{{"Duplicate GPU detected"}, kOneGpu},
    Known{{"claims rank", "too"}, kOneRank},
    Known{{"CUDA", "out of memory"}, kGpuMemory},
    Known{{"HIP", "out of memory"}, kGpuMemory},
    Known{{"CUDA_ERROR_OUT_OF_MEMORY"}, kGpuMemory},
    Known{{"cudaErrorMemoryAllocation"}, kGpuMemory},
    Known{{"CUBLAS_STATUS_ALLOC_FAILED"}, kGpuMemory},
    Known{{"Address already in use"}, kAddressInUse, true},
    Known{{"address already in use"}, kAddressInUse, true},
    Known{{"EADDRINUSE"}, kAddressInUse, true},
    Known{{"unable to open shared memory object"}, kSharedMemory},
    Known{{"insufficient shared memory"}, kSharedMemory},
    Known{{"killed by signal: Bus error"}, kSharedMemory},
    Known{{"No space left on device", "/dev/shm"}, kSharedMemory, true},
    Known{{"No space left on device", "shared memory"}, kSharedMemory, true},
    Known{{"creating shared memory segment"}, kSharedMemory},
    Known{{"invalid device ordinal"}, kNoSuchGpu},
    Known{{"No CUDA GPUs are available"}, kNoSuchGpu},
    Known{{"no CUDA-capable device is detected"}, kNoSuchGpu},
    Known{{"CUDA driver version is insufficient"}, kDriver},
    Known{{"driver on your system is too old"}, kDriver},
    Known{{"no kernel image is available"}, kArchitecture},
    Known{{"device-side assert triggered"}, kDeviceAssert},
    Known{{"Too many open files"}, kFiles, true},
    Known{{"can't start new thread"}, kProcesses},
    Known{{"pthread_create", "Resource temporarily unavailable"}, kProcesses, true},
    Known{{"fork", "Resource temporarily unavailable"}, kProcesses, true},
    Known{{"BlockingIOError: [Errno 11]", "Resource temporarily unavailable"}, kProcesses},
    Known{{"RLIMIT_MEMLOCK"}, kLocked},
    Known{{"ibv_", "Cannot allocate memory"}, kLocked},
    Known{{"no socket interface found"}, kNcclInterface},
    Known{{"ollective operation timeout"}, kTimeout},
    Known{{"Timed out waiting", "recv operation"}, kTimeout},
    Known{{"Timed out waiting", "send operation"}, kTimeout},
    Known{{"still waits for ", "alive but not there"}, kTimeout},
    Known{{"unhandled cuda error"}, kNccl},
    Known{{"unhandled system error"}, kNccl},
    Known{{"ncclUnhandledCudaError"}, kNccl},
    Known{{"ncclSystemError"}, kNccl},
    Known{{"ncclInternalError"}, kNccl},
    Known{{"ncclInvalidUsage"}, kNccl},
    Known{{"No space left on device"}, kDisk, true},
    Known{{"bad interpreter", "^M"}, kLineEnds},
    Known{{"\r: No such file or directory"}, kLineEnds},
    Known{{"bad interpreter"}, kInterpreter},
    Known{{"version `GLIBC", "not found"}, kNewerSystem},
    Known{{"killed by signal: Killed"}, kHostMemory},
    Known{{"DefaultCPUAllocator", "allocate memory"}, kHostMemory},
    Known{{"Cannot allocate memory"}, kHostMemory, true},
    Known{{"MemoryError"}, kHostMemory},
    Known{{"std::bad_alloc"}, kHostMemory},
    Known{{"PermissionError"}, kPermission, true},
    Known{{"Permission denied"}, kPermission, true},
};

constexpr std::size_t kLongestName = 100;

// What stands between the two, empty if one of them isn't there.
std::string between(std::string_view line, std::string_view before, std::string_view after) {
  const std::size_t begin = line.find(before);
  if (begin == std::string_view::npos) return {};
  line.remove_prefix(begin + before.size());
  const std::size_t end = line.find(after);
  return end == std::string_view::npos ? std::string() : std::string(line.substr(0, end));
}

// As an exception, or "python3: No module named x" where it was to be run itself.
std::string missing_module(const Lines& lines, const HintContext& context) {
  constexpr std::string_view kRun = ": No module named ";
  for (const std::string_view line : lines) {
    std::string module = between(line, "ModuleNotFoundError: No module named '", "'");
    const std::size_t run = line.find(kRun);
    if (module.empty() && run != std::string_view::npos && has(line.substr(0, run), "python")) {
      module = line.substr(run + kRun.size());
    }
    if (module.empty() || module.size() > kLongestName) continue;
    const std::string python =
        context.interpreter.empty() ? "the Python that ran" : context.interpreter;
    return python + " has no module " + module +
           ": start ddplaunch in the environment that has it, or name its Python (PYTHON_EXEC)";
  }
  return {};
}

std::string missing_library(const Lines& lines) {
  constexpr std::string_view kAfter = ": cannot open shared object file";
  for (const std::string_view line : lines) {
    const std::size_t end = line.find(kAfter);
    if (end == std::string_view::npos) continue;
    const std::string_view before = line.substr(0, end);
    const std::size_t space = before.find_last_of(" :");
    const std::string name(space == std::string_view::npos ? before : before.substr(space + 1));
    if (name.empty() || name.size() > kLongestName) continue;
    return "the library " + name +
           " isn't found: install it, or name its folder (LD_LIBRARY_PATH), in the "
           "environment that ddplaunch is started in";
  }
  return {};
}

std::string by_words(const Failure& failure, const HintContext& context) {
  Lines lines = lines_at_end(failure.message);
  const Lines output = lines_at_end(failure.last_output);
  const std::size_t last = lines.size() + std::min(first_exception(output), last_words(output));
  const std::size_t message_lines = lines.size();
  lines.insert(lines.end(), output.begin(), output.end());
  std::string hint = missing_module(lines, context);
  if (hint.empty()) hint = missing_library(lines);
  if (!hint.empty()) return hint;
  const auto is_meant = [&](const Known& candidate) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const bool looked_at = !candidate.in_last_words || i < message_lines || i >= last;
      if (looked_at && has(lines[i], candidate.sign)) return true;
    }
    return false;
  };
  const auto known = std::find_if(kKnown.begin(), kKnown.end(), is_meant);
  return known == kKnown.end() ? std::string() : std::string(known->advice);
}

std::string by_signal(const Failure& failure, const HintContext& context) {
  switch (failure.signal) {
    case SIGKILL:
      return failure.oom_counter.empty()
                 ? "SIGKILL is mostly the kernel's, out of memory (see dmesg), or a batch system's"
                 : "look for who sends SIGKILL: a batch system at its limit, a daemon that guards "
                   "memory (earlyoom, systemd-oomd), a person";
    case SIGBUS:
      return "SIGBUS mostly means that " + std::string(kSharedMemory);
    case SIGILL:
      return "SIGILL mostly means that the program was built for another CPU";
    case SIGXFSZ:
      return "a file grew over the limit: ulimit -f";
    case SIGXCPU:
      return "the limit of CPU time is used up: ulimit -t";
    case SIGSEGV:
    case SIGFPE:
    case SIGABRT:
      return context.interpreter.empty()
                 ? "ulimit -c unlimited before the launch keeps a core for the debugger"
                 : "with PYTHONFAULTHANDLER=1 in the environment Python says where it was";
    default:
      return {};
  }
}

std::string by_code(std::int32_t exit_code) {
  switch (exit_code) {
    case rendezvous::exit_code::kNotFound:
      return "127 mostly means that a program or a shared library was not found by what was "
             "started";
    case rendezvous::exit_code::kNotExecutable:
      return "126 mostly means that a program may not be executed, or is built for another machine";
    default:
      return {};
  }
}

}  // namespace

std::string hint_for(const Failure& failure, const HintContext& context) {
  const bool signaled = failure.kind == FailureKind::worker_signaled;
  if (!signaled && failure.kind != FailureKind::worker_exited) {
    return {};  // its own text says what to do
  }
  if (failure.oom_killed) {
    return "give it more memory, or use less: fewer DataLoader workers, smaller batches, fewer "
           "workers on this node";
  }
  std::string hint = by_words(failure, context);
  if (hint.empty()) hint = signaled ? by_signal(failure, context) : by_code(failure.exit_code);
  return hint;
}

}  // namespace ddp::launcher
