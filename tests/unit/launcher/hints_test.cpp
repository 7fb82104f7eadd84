#include "launcher/core/hints.h"

#include <catch2/catch.hpp>
#include <csignal>
#include <string>
#include <utility>

using ddp::launcher::hint_for;
using ddp::rendezvous::Failure;
using ddp::rendezvous::FailureKind;

namespace {

Failure exited(std::int32_t code, const std::string& last_output = {}) {
  Failure failure;
  failure.rank = 1;
  failure.exit_code = code;
  failure.last_output = last_output;
  return failure;
}

Failure killed(std::int32_t signal, const std::string& last_output = {}) {
  Failure failure = exited(-1, last_output);
  failure.kind = FailureKind::worker_signaled;
  failure.signal = signal;
  return failure;
}

}  // namespace

TEST_CASE("hints: what the last words tell") {
  for (const auto& [words, advice] : {
           std::pair("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
                     "a GPU's memory is used up"),
           std::pair("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU "
                     "0 has a total capacity of 79.10 GiB",
                     "a GPU's memory is used up"),
           std::pair("RuntimeError: CUDA error: out of memory", "a GPU's memory is used up"),
           std::pair("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling "
                     "`cublasCreate(handle)`",
                     "a GPU's memory is used up"),
           std::pair("OSError: [Errno 98] Address already in use", "a port that is taken"),
           std::pair("RuntimeError: The server socket has failed to listen on any local network "
                     "address. port: 29500, useIpv6: 0, code: -98, name: EADDRINUSE, message: "
                     "address already in use",
                     "a port that is taken"),
           std::pair(
               "torch.distributed.DistBackendError: NCCL error in: x.cpp:1970, invalid usage, "
               "NCCL version 2.21.5\nncclInvalidUsage: This usually reflects invalid usage of "
               "NCCL library.\nLast error:\nDuplicate GPU detected : rank 1 and rank 0 both on "
               "CUDA device 4000",
               "two ranks use one GPU"),
           std::pair("ncclUnhandledCudaError: Call to CUDA function failed.", "NCCL_DEBUG=WARN"),
           std::pair("torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system "
                     "error (run with NCCL_DEBUG=INFO for details), NCCL version 2.18.1",
                     "NCCL_DEBUG=WARN"),
           std::pair(
               "alpha:1:1 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
               "NCCL_SOCKET_IFNAME"),
           std::pair("[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, "
                     "OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600029 milliseconds",
                     "did not take part in a collective"),
           std::pair("RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting "
                     "1800000ms for recv operation to complete",
                     "did not take part in a collective"),
           std::pair("RuntimeError: CUDA error: invalid device ordinal", "fewer GPUs than workers"),
           std::pair("RuntimeError: No CUDA GPUs are available", "fewer GPUs than workers"),
           std::pair("RuntimeError: CUDA error: device-side assert triggered",
                     "CUDA_LAUNCH_BLOCKING=1"),
           std::pair("RuntimeError: CUDA error: no kernel image is available for execution on the "
                     "device",
                     "not built for this GPU"),
           std::pair("RuntimeError: unable to open shared memory object </torch_7_3_0> in "
                     "read-write mode: No space left on device (28)",
                     "--shm-size"),
           std::pair(
               "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Bus error. It "
               "is possible that dataloader's workers are out of shared memory.",
               "--shm-size"),
           std::pair("OSError: [Errno 28] No space left on device: '/dev/shm/x'", "--shm-size"),
           std::pair("OSError: [Errno 28] No space left on device: '/data/x'", "df -h"),
           std::pair("OSError: [Errno 24] Too many open files: 'x'", "ulimit -n"),
           std::pair("RuntimeError: can't start new thread", "ulimit -u"),
           std::pair("bash: fork: retry: Resource temporarily unavailable", "ulimit -u"),
           std::pair("libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.", "ulimit -l"),
           std::pair("RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed.",
                     "has no memory left"),
           std::pair("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB",
                     "has no memory left"),
           std::pair("terminate called after throwing an instance of 'std::bad_alloc'",
                     "has no memory left"),
           std::pair("./train: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found "
                     "(required by ./train)",
                     "built on a newer system"),
           std::pair("bash: ./train.sh: /bin/bash^M: bad interpreter: No such file or directory",
                     "carriage return"),
           std::pair("/bin/sh: 1: ./x: bad interpreter: No such file or directory",
                     "the interpreter that a script's first line names"),
           std::pair("PermissionError: [Errno 13] Permission denied: '/data/run'", "ls -l"),
           std::pair("ddp: rank 1 claims rank 1 on alpha too", "two processes claim one rank"),
       }) {
    INFO(words);
    CHECK_THAT(hint_for(exited(1, words), {}), Catch::Contains(advice));
    CHECK_THAT(hint_for(exited(1, std::string("epoch 3\n") + words + "\n"), {}),
               Catch::Contains(advice));
    Failure recorded = exited(1);
    recorded.message = words;
    CHECK_THAT(hint_for(recorded, {}), Catch::Contains(advice));
  }
}

TEST_CASE("hints: which module is missing, and in which Python") {
  const std::string words =
      "Traceback (most recent call last):\n  File \"train.py\", line 1, in "
      "<module>\n    import torch\nModuleNotFoundError: No module named "
      "'torch'";
  CHECK_THAT(hint_for(exited(1, words), {"/usr/bin/python3"}),
             Catch::StartsWith("/usr/bin/python3 has no module torch: "));
  CHECK_THAT(hint_for(exited(1, words), {}),
             Catch::StartsWith("the Python that ran has no module torch: "));
  CHECK_THAT(hint_for(exited(1, "/usr/bin/python3: No module named my_package.train"), {}),
             Catch::Contains("has no module my_package.train: "));
  CHECK_THAT(hint_for(exited(1,
                             "/usr/bin/python3: Error while finding module specification for "
                             "'a.b' (ModuleNotFoundError: No module named 'a')"),
                      {}),
             Catch::Contains("has no module a: "));
  CHECK(hint_for(exited(1, "warning: apex: No module named apex, going on without"), {}).empty());
}

TEST_CASE("hints: which library is missing") {
  CHECK_THAT(hint_for(exited(127,
                             "./train: error while loading shared libraries: libcudart.so.12: "
                             "cannot open shared object file: No such file or directory"),
                      {}),
             Catch::StartsWith("the library libcudart.so.12 isn't found: "));
  CHECK_THAT(hint_for(exited(1,
                             "ImportError: libcudnn.so.9: cannot open shared object file: No "
                             "such file or directory"),
                      {"python3"}),
             Catch::StartsWith("the library libcudnn.so.9 isn't found: "));
}

TEST_CASE("hints: what the signal or the code tells where nothing else does") {
  CHECK_THAT(hint_for(killed(SIGBUS), {}), Catch::Contains("/dev/shm"));
  CHECK_THAT(hint_for(killed(SIGILL), {}), Catch::Contains("another CPU"));
  CHECK_THAT(hint_for(killed(SIGXFSZ), {}), Catch::Contains("ulimit -f"));
  CHECK_THAT(hint_for(killed(SIGXCPU), {}), Catch::Contains("ulimit -t"));
  CHECK_THAT(hint_for(killed(SIGSEGV), {"python3"}), Catch::Contains("PYTHONFAULTHANDLER"));
  CHECK_THAT(hint_for(killed(SIGSEGV), {}), Catch::Contains("ulimit -c"));
  CHECK_THAT(hint_for(exited(127), {}), Catch::StartsWith("127 mostly means that a program or a "
                                                          "shared library was not found"));
  CHECK_THAT(hint_for(exited(126), {}), Catch::StartsWith("126 mostly means that a program may not "
                                                          "be executed"));
  CHECK(hint_for(exited(3), {}).empty());
  CHECK(hint_for(killed(SIGTERM), {}).empty());
}

TEST_CASE("hints: SIGKILL, by what the kernel counts") {
  Failure failure = killed(SIGKILL);
  CHECK_THAT(hint_for(failure, {}), Catch::Contains("see dmesg"));
  failure.oom_counter = "cgroup /x";
  CHECK_THAT(hint_for(failure, {}), Catch::Contains("who sends SIGKILL"));
  failure.oom_killed = true;
  CHECK_THAT(hint_for(failure, {}), Catch::Contains("give it more memory"));
}

TEST_CASE("hints: none where nobody died, and none from what only resembles a cause") {
  Failure failure = exited(1, "CUDA out of memory");
  for (const FailureKind kind : {FailureKind::spawn_failed, FailureKind::interrupted,
                                 FailureKind::node_lost, FailureKind::launcher_failed}) {
    failure.kind = kind;
    CHECK(hint_for(failure, {}).empty());
  }
  for (const char* words : {"", "step 3", "ValueError: out of range", "No module named",
                            "memory: 3 GiB", "the port is free", "NCCL version 2.21.5+cuda12.4",
                            "Using CUDA", ": cannot open shared object file"}) {
    INFO(words);
    CHECK(hint_for(exited(1, words), {}).empty());
  }
}

TEST_CASE("hints: what was complained of and survived explains nothing") {
  const std::string survived = "matplotlib: /home/x/.config: Permission denied, using /tmp\n";
  CHECK(hint_for(exited(1, survived + "epoch 1\nValueError: shapes\n"), {}).empty());
  CHECK(hint_for(exited(1, survived + "epoch 1\nepoch 2\nepoch 3\n"), {}).empty());
  CHECK_FALSE(hint_for(exited(1, survived), {}).empty());
}

TEST_CASE("hints: an exception counts, whatever other programs say after it") {
  CHECK_FALSE(hint_for(exited(1,
                              "Traceback (most recent call last):\n  File \"a.py\", line 3\n"
                              "ModuleNotFoundError: No module named 'x'\n"
                              "logger: run 1\nlogger: done\nlogger: see there\nlogger: bye\n"),
                       {})
                  .empty());
}
