// The launcher's smaller system parts: control page, error files, GPU count.
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "launcher/io/error_files.h"
#include "launcher/io/host_probe.h"
#include "launcher/io/oom_probe.h"
#include "launcher/io/shared_page.h"

namespace {

using namespace ddp::launcher;
using ddp::rendezvous::ControlPage;
using ddp::rendezvous::Failure;
using ddp::rendezvous::Placement;
using ddp::rendezvous::PoisonState;

Placement two_workers() {
  Placement placement;
  placement.round = {3, 0xABCD};
  placement.first_rank = {4};
  placement.world_size = 6;
  return placement;
}

// What a worker maps.
struct Mapping {
  explicit Mapping(int fd)
      : page(static_cast<ControlPage*>(::mmap(nullptr, ddp::rendezvous::kControlPageSize,
                                              PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0))) {
    REQUIRE(page != MAP_FAILED);
  }
  ~Mapping() { ::munmap(page, ddp::rendezvous::kControlPageSize); }
  ControlPage* page;
};

Failure death_of(std::int32_t rank) {
  Failure failure;
  failure.rank = rank;
  failure.pid = 77;
  failure.exit_code = -1;
  failure.signal = 11;
  failure.host = std::string(200, 'h');
  failure.message = "it fell";
  return failure;
}

}  // namespace

TEST_CASE("control page: says which round it belongs to") {
  SharedPage shared(two_workers(), 2);
  const Mapping worker(shared.fd());
  CHECK(worker.page->magic == ddp::rendezvous::kControlPageMagic);
  CHECK(worker.page->round_number == 3);
  CHECK(worker.page->round_nonce == 0xABCD);
  CHECK(worker.page->world_size == 6);
  CHECK(worker.page->local_world_size == 2);
  CHECK(worker.page->first_rank == 4);
  CHECK(worker.page->poison == static_cast<std::uint32_t>(PoisonState::alive));
}

TEST_CASE("control page: the first death wins and long texts are cut") {
  SharedPage shared(two_workers(), 2);
  const Mapping worker(shared.fd());
  shared.poison(death_of(5));
  shared.poison(death_of(4));
  CHECK(worker.page->poison == static_cast<std::uint32_t>(PoisonState::poisoned));
  CHECK(worker.page->dead_rank == 5);
  CHECK(worker.page->dead_pid == 77);
  CHECK(worker.page->exit_code == -1);
  CHECK(worker.page->dead_signal == 11);
  CHECK(std::string(worker.page->host) == std::string(63, 'h'));
  CHECK(std::string(worker.page->reason) == "it fell");
  CHECK(worker.page->doorbell[0] == 1);
  CHECK(worker.page->doorbell[1] == 1);
  CHECK(worker.page->doorbell[2] == 0);
}

TEST_CASE("control page: a rank that sleeps on its doorbell wakes") {
  SharedPage shared(two_workers(), 2);
  const Mapping worker(shared.fd());
  bool woken = false;
  std::thread sleeper([&] {
    const timespec limit{20, 0};
    // Returns at once with EAGAIN if the bell has rung already: that is being woken too.
    woken = ::syscall(SYS_futex, &worker.page->doorbell[1], FUTEX_WAIT, 0, &limit) == 0 ||
            errno == EAGAIN;
  });
  shared.poison(death_of(0));
  sleeper.join();
  CHECK(woken);
}

TEST_CASE("control page: a worker can't shrink it under the others") {
  SharedPage shared(two_workers(), 2);
  CHECK(::ftruncate(shared.fd(), 0) != 0);
}

TEST_CASE("error files: both of PyTorch's forms are read, anything else is no message") {
  const std::string path = "error_files_test.json";
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    return read_error_file(path).message;
  };
  CHECK(read(R"({"message": {"message": "ValueError: no", "extraInfo": {"timestamp": "1"}}})") ==
        "ValueError: no");
  CHECK(read(R"({"message": "plain", "timestamp": 3})") == "plain");
  CHECK(read(R"({"message": 3})").empty());
  CHECK(read(R"({"message": {"text": "x"}})").empty());
  CHECK(read("[1]").empty());
  CHECK(read("{\"message\": ").empty());
  CHECK(read("").empty());
  std::filesystem::remove(path);
  CHECK(read_error_file(path).message.empty());
  CHECK(read_error_file("").message.empty());
}

TEST_CASE("error files: folders are made, private, and nothing stays") {
  const std::filesystem::path temp = std::filesystem::absolute("error_files_test");
  std::filesystem::create_directory(temp);
  {
    ErrorFiles files({"/proc/no/such/folder", temp.string()}, "../a b");
    const std::filesystem::path path = files.prepare(two_workers(), {1});
    CHECK(path.filename() == "error.json");
    CHECK(path.parent_path().filename() == "1");
    REQUIRE(std::filesystem::is_directory(path.parent_path()));
    CHECK(std::filesystem::weakly_canonical(path).string().rfind(temp.string(), 0) == 0);
    CHECK((std::filesystem::status(path.parent_path()).permissions() &
           std::filesystem::perms::others_all) == std::filesystem::perms::none);
    std::ofstream(path) << "{}";
    CHECK(files.clean(true));
    CHECK(std::filesystem::exists(path));
    CHECK_FALSE(files.clean(false));
  }
  CHECK(std::filesystem::is_empty(temp));
  std::filesystem::remove_all(temp);
}

TEST_CASE("error files: whoever cleans up after us knows the folder before it is made") {
  const std::filesystem::path temp = std::filesystem::absolute("error_files_note_test");
  std::filesystem::create_directory(temp);
  std::array<char, 4096> note{};
  ErrorFiles files({"/proc/no/such/folder", temp.string()}, "run", note);
  CHECK(note[0] == '\0');
  REQUIRE_FALSE(files.prepare(two_workers(), {0}).empty());
  CHECK(note.data() == files.folder());
  CHECK_FALSE(files.clean(true));
  CHECK(std::filesystem::is_empty(temp));

  ErrorFiles nowhere({temp.string() + "/missing"}, "run", note);
  CHECK(nowhere.prepare(two_workers(), {0}).empty());
  std::filesystem::remove_all(temp);
}

TEST_CASE("error files: rounds that left nothing leave no folder, others keep their file") {
  const std::filesystem::path temp = std::filesystem::absolute("error_files_tidy_test");
  std::filesystem::create_directory(temp);
  ErrorFiles files({temp.string()}, "run");
  Placement placement = two_workers();
  const auto round = [&](std::int32_t restart) {
    placement.round.number = static_cast<std::uint64_t>(restart) + 1;
    placement.restart_count = restart;
    const std::filesystem::path path = files.prepare(placement, {0});
    REQUIRE_FALSE(files.prepare(placement, {1}).empty());
    files.tidy();
    return path;
  };
  const std::filesystem::path first = round(0);
  std::ofstream(first) << "{}";
  const std::filesystem::path second = round(1);
  const std::filesystem::path third = round(2);
  CHECK(std::filesystem::exists(first));
  CHECK_FALSE(std::filesystem::exists(second.parent_path().parent_path()));
  CHECK(std::filesystem::exists(third.parent_path()));
  CHECK(files.clean(true));
  CHECK(std::filesystem::exists(first));
  CHECK_FALSE(std::filesystem::exists(third.parent_path().parent_path()));
  CHECK_FALSE(files.clean(false));
  CHECK(std::filesystem::is_empty(temp));
  std::filesystem::remove_all(temp);
}

TEST_CASE("error files: not where strangers could exchange our folder for theirs") {
  const std::filesystem::path temp = std::filesystem::absolute("error_files_safe_test");
  std::filesystem::create_directory(temp);
  const auto is_used = [&](mode_t mode) {
    ::chmod(temp.c_str(), mode);
    ErrorFiles files({temp.string()}, "run");
    const bool used = !files.prepare(two_workers(), {0}).empty();
    files.clean(false);
    return used;
  };
  CHECK(is_used(0700));
  CHECK(is_used(01777));
  CHECK(is_used(0770));
  CHECK_FALSE(is_used(0777));
  if (::geteuid() == 0) {
    REQUIRE(::chown(temp.c_str(), 65534, 65534) == 0);
    CHECK_FALSE(is_used(0700));
    CHECK_FALSE(is_used(01777));
  } else {
    WARN("skipped: only root can give a folder away");
  }
  std::filesystem::remove_all(temp);
}

TEST_CASE("error files: a file that is not the worker's, or none at all, says nothing") {
  const std::string path = "error_files_foreign_test.json";
  std::ofstream(path) << R"({"message": "mine"})";
  CHECK(read_error_file(path).message == "mine");
  REQUIRE(::symlink(path.c_str(), "error_files_link_test.json") == 0);
  CHECK(read_error_file("error_files_link_test.json").message.empty());
  REQUIRE(::mkfifo("error_files_fifo_test.json", 0600) == 0);
  CHECK(read_error_file("error_files_fifo_test.json").message.empty());  // and does not wait for it
  if (::geteuid() == 0) {
    REQUIRE(::chown(path.c_str(), 65534, 65534) == 0);
    CHECK(read_error_file(path).message.empty());
  }
  for (const std::string& made : {path, std::string("error_files_link_test.json"),
                                  std::string("error_files_fifo_test.json")}) {
    std::filesystem::remove(made);
  }
}

TEST_CASE("error files: no place to write is no error") {
  ErrorFiles files({"/proc/no/such/folder"}, "run");
  CHECK(files.prepare(two_workers(), {0}).empty());
  CHECK_FALSE(files.clean(true));
}

TEST_CASE("gpus: CUDA_VISIBLE_DEVICES counts up to the first entry that isn't there") {
  CHECK(count_visible("", 4) == 0);
  CHECK(count_visible("0", 4) == 1);
  CHECK(count_visible("0,1, 3", 4) == 3);
  CHECK(count_visible("0,4,1", 4) == 1);
  CHECK(count_visible("-1", 4) == 0);
  CHECK(count_visible("GPU-8932f937,MIG-GPU-1", 4) == 2);
  CHECK(count_visible("0,1", 0) == 0);
  CHECK(allowed_cpus() >= 1);
  CHECK_FALSE(missing_kernel_support());
}

TEST_CASE("kills for want of memory are counted for our own cgroup, else for the host") {
  namespace fs = std::filesystem;
  const fs::path root = fs::absolute("oom_probe_test");
  const auto write = [&root](const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  fs::remove_all(root);
  CHECK(OomProbe(root).counter().empty());
  CHECK_FALSE(OomProbe(root).has_killed());

  write("proc/vmstat", "oom_kill 3\n");
  CHECK(OomProbe(root).counter() == "this host");
  // In a container: the host's path, and of its cgroups only ours.
  write("proc/self/cgroup", "4:memory:/docker/42\n0::/\n");
  write("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\noom_kill 7\n");
  CHECK(OomProbe(root).counter() == "cgroup /");
  const std::string file = "sys/fs/cgroup/memory/docker/42/memory.oom_control";
  write(file, "oom_kill 7\n");
  const OomProbe first(root);
  CHECK(first.counter() == "cgroup /docker/42");
  CHECK_FALSE(first.has_killed());
  write(file, "oom_kill 8\n");
  CHECK(first.has_killed());

  write("proc/self/cgroup", "0::/user/1\n");
  write("sys/fs/cgroup/user/1/memory.events", "oom 1\noom_kill 1\n");
  const OomProbe second(root);
  CHECK(second.counter() == "cgroup /user/1");
  write("sys/fs/cgroup/user/1/memory.events", "oom 2\noom_kill 2\n");
  CHECK(second.has_killed());
  fs::remove_all(root);
}
