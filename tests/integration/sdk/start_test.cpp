// How a group starts, or says why it can't; and the store that comes with it.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <ddp/ddp.hpp>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "tests/integration/sdk/ranks.h"

namespace ddp::testing {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

TEST_CASE("start: a process that nobody launched is alone, and everything works") {
  const StoreServer store;
  const Variables nothing{{"RANK", ""},        {"WORLD_SIZE", ""}, {"MASTER_ADDR", ""},
                          {"MASTER_PORT", ""}, {"LOCAL_RANK", ""}, {"LOCAL_WORLD_SIZE", ""}};
  Ranks job(
      1, store,
      [](int) {
        ProcessGroup group = init_process_group();
        std::vector<float> data{3, 4};
        group.all_reduce(data, ReduceOp::avg);
        group.broadcast(data, 0);
        group.barrier();
        group.store().set("key", "value");
        const bool right = group.is_main() && group.world_size() == 1 && group.local_rank() == 0 &&
                           group.backend() == "alone" && data == std::vector<float>{3, 4} &&
                           group.store().get("key") == "value" && group.store().add("n", 5) == 5;
        return std::string(right ? "ok" : "wrong");
      },
      nothing);
  CHECK(job.wait()[0].text == "ok");
}

TEST_CASE("start: ranks know their places") {
  const StoreServer store;
  Ranks job(3, store, [](int) {
    const ProcessGroup group = init_process_group();
    return std::to_string(group.rank()) + "/" + std::to_string(group.world_size()) + " " +
           std::to_string(group.local_rank()) + "/" + std::to_string(group.local_world_size()) +
           (group.is_main() ? " main" : "");
  });
  const auto outcomes = job.wait();
  CHECK(outcomes[0].text == "0/3 0/3 main");
  CHECK(outcomes[1].text == "1/3 1/3");
  CHECK(outcomes[2].text == "2/3 2/3");
}

TEST_CASE("start: local ranks are counted where the launcher does not say") {
  const StoreServer store;
  Ranks job(2, store,
            [](int) {
              const ProcessGroup group = init_process_group();
              return std::to_string(group.local_rank()) + "/" +
                     std::to_string(group.local_world_size());
            },
            {{"LOCAL_RANK", ""}, {"LOCAL_WORLD_SIZE", ""}});
  const auto outcomes = job.wait();
  CHECK(outcomes[0].text == "0/2");
  CHECK(outcomes[1].text == "1/2");
}

TEST_CASE("start: a second process with one rank is told so, and who has it") {
  const StoreServer store;
  Ranks job(2, store, [](int) {
    ProcessGroup group = init_process_group();
    say("in");
    ::pause();
    return std::string("woken");
  });
  job.await_word(0, "in");
  const std::string holder = std::to_string(job.pid(0));
  Ranks second(1, store,
               [](int) {
                 const ProcessGroup group = init_process_group();
                 return std::string("started");
               },
               {{"WORLD_SIZE", "2"}});
  CHECK_THAT(second.wait()[0].text, StartsWith("Mismatch") &&
                                        Contains("but process " + holder + " on ") &&
                                        Contains("claims rank 0 too"));
  for (const int rank : {0, 1}) kill(job.pid(rank), SIGKILL);
}

TEST_CASE("start: the timeout names the ranks that did not come") {
  const StoreServer store;
  Ranks job(1, store,
            [](int) {
              ProcessGroup group = init_process_group();
              return std::string("started");
            },
            {{"WORLD_SIZE", "4"}, {"DDP_TIMEOUT", "1"}});
  CHECK_THAT(job.wait()[0].text, StartsWith("Timeout") && Contains("for ranks 1, 2, 3 to start"));
}

TEST_CASE("start: a store that is not there is a timeout that says where it should be") {
  StoreServer store;
  const std::string port = store.port();
  store.kill();
  Ranks job(1, store, [](int) { return init_process_group().backend(); }, {{"DDP_TIMEOUT", "1"}});
  CHECK_THAT(job.wait()[0].text,
             StartsWith("Timeout") && Contains("127.0.0.1:" + port) && Contains("refused"));
}

TEST_CASE("start: options count more than the environment") {
  const StoreServer store;
  Ranks job(2, store,
            [](int) {
              InitOptions options;
              options.backend = "shm";
              options.timeout = std::chrono::seconds(20);
              return init_process_group(options).backend();
            },
            {{"DDP_BACKEND", "nccl"}, {"DDP_TIMEOUT", "0.001"}});
  for (const Outcome& outcome : job.wait()) CHECK(outcome.text == "shm");
}

TEST_CASE("start: the longest timeout there is is long, and a negative one is refused") {
  const StoreServer store;
  Ranks job(2, store, [](int) {
    InitOptions options;
    options.timeout = std::chrono::milliseconds(-1);
    try {
      init_process_group(options);
      return std::string("accepted");
    } catch (const InvalidUse&) {
    }
    options.timeout = std::chrono::milliseconds::max();
    ProcessGroup group = init_process_group(options);
    group.barrier();
    return group.backend();
  });
  for (const Outcome& outcome : job.wait()) CHECK(outcome.text == "shm");
}

TEST_CASE("start: what the last start left in a store that outlives it misleads nobody") {
  const StoreServer store;
  const Ranks::Body body = [](int rank) {
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ProcessGroup group = init_process_group();
    std::vector<int> data{rank + 1};
    group.all_reduce(data);
    return group.backend() + " " + std::to_string(data[0]);
  };
  for (const char* restarts : {"0", "1", "2"}) {
    Ranks job(2, store, body, {{"TORCHELASTIC_RESTART_COUNT", restarts}, {"DDP_TIMEOUT", "5"}});
    for (const Outcome& outcome : job.wait()) CHECK(outcome.text == "shm 3");
  }
}

TEST_CASE("start: ranks that ask for different back-ends are told so") {
  const StoreServer store;
  Ranks job(2, store, [](int rank) {
    InitOptions options;
    options.backend = rank == 0 ? "shm" : "gloo";
    return init_process_group(options).backend();
  });
  for (const Outcome& outcome : job.wait()) {
    CHECK_THAT(outcome.text, StartsWith("Mismatch") && Contains("\"shm\"") && Contains("\"gloo\""));
  }
}

TEST_CASE("start: ranks of two nodes don't share memory, whatever LOCAL_WORLD_SIZE says") {
  const StoreServer store;
  Ranks job(2, store, [](int rank) {
    ::setenv("DDP_NODE_ID", rank == 0 ? "aa" : "bb", 1);
    InitOptions options;
    options.backend = "shm";
    return init_process_group(options).backend();
  });
  for (const Outcome& outcome : job.wait()) {
    CHECK_THAT(outcome.text, StartsWith("Unavailable") && Contains("all ranks on one host"));
  }
}

// A folder with one file in it, removed in the end.
class FolderWith {
 public:
  FolderWith(const std::string& name, const std::string& text) {
    char made[] = "/tmp/ddp_sdk_test_XXXXXX";
    if (::mkdtemp(made) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = made;
    file_ = folder_ + "/" + name;
    std::ofstream(file_) << text;
  }
  FolderWith(const FolderWith&) = delete;
  FolderWith& operator=(const FolderWith&) = delete;
  ~FolderWith() {
    ::unlink(file_.c_str());
    ::rmdir(folder_.c_str());
  }
  [[nodiscard]] const std::string& path() const { return folder_; }

 private:
  std::string folder_;
  std::string file_;
};

TEST_CASE("start: a broken plug-in is named, not replaced by another in silence") {
  const StoreServer store;
  const FolderWith folder("libddp_gloo.so", "not a library");
  Ranks job(2, store,
            [](int) {
              InitOptions options;
              options.backend = "gloo";
              return init_process_group(options).backend();
            },
            {{"DDP_PLUGIN_PATH", "/nowhere:" + folder.path()}});
  for (const Outcome& outcome : job.wait()) {
    CHECK_THAT(outcome.text, StartsWith("Unavailable") && Contains("cannot be loaded") &&
                                 Contains(folder.path() + "/libddp_gloo.so"));
  }
}

#ifdef DDP_TEST_HAS_GLOO
TEST_CASE("gloo: the plug-in beside the library is found and gives the same bits as shm") {
  const StoreServer store;
  Ranks job(3, store, [](int rank) {
    InitOptions options;
    options.backend = "shm";
    ProcessGroup shm = init_process_group(options);
    options.backend = "gloo";
    ProcessGroup gloo = init_process_group(options);
    std::vector<float> one(50'000);
    for (std::size_t i = 0; i < one.size(); ++i) {
      one[i] = static_cast<float>(i % 1000) / static_cast<float>(3 + 4 * rank);
    }
    std::vector<float> two = one;
    shm.all_reduce(one, ReduceOp::avg);
    gloo.all_reduce(two, ReduceOp::avg);
    return shm.backend() + " " + gloo.backend() + (one == two ? " same" : " different");
  });
  for (const Outcome& outcome : job.wait()) CHECK(outcome.text == "shm gloo same");
}

TEST_CASE("gloo: auto takes it for ranks of two nodes") {
  const StoreServer store;
  Ranks job(2, store, [](int rank) {
    ::setenv("DDP_NODE_ID", rank == 0 ? "aa" : "bb", 1);
    ProcessGroup group = init_process_group();
    std::vector<int> data{rank + 1};
    group.all_reduce(data);
    return group.backend() + " " + std::to_string(data[0]);
  });
  for (const Outcome& outcome : job.wait()) CHECK(outcome.text == "gloo 3");
}

TEST_CASE("gloo: the launcher's word of who has died is passed on") {
  const StoreServer store;
  ControlPageOwner page(3);
  Ranks job(3, store,
            [](int rank) {
              InitOptions options;
              options.backend = "gloo";
              ProcessGroup group = init_process_group(options);
              if (rank == 2) {
                say("ready");
                ::pause();
              }
              std::vector<float> data(1000);
              for (;;) group.all_reduce(data);
              return std::string();
            },
            {{"DDP_SHM_FD", std::to_string(page.fd())}, {"DDP_ROUND", "1:abc"}});
  job.await_word(2, "ready");
  page.poison(2, job.pid(2), "host-x", "killed by SIGKILL");
  ::kill(job.pid(2), SIGKILL);
  const auto outcomes = job.wait();
  for (const std::size_t rank : {0U, 1U}) {
    CHECK_THAT(outcomes[rank].text,
               StartsWith("PeerLost 2: rank 2 on host-x is lost (killed by SIGKILL)"));
  }
}

TEST_CASE("gloo: the launcher's word ends a call though no socket has closed") {
  const StoreServer store;
  ControlPageOwner page(3);
  Ranks job(3, store,
            [](int rank) {
              InitOptions options;
              options.backend = "gloo";
              ProcessGroup group = init_process_group(options);
              if (rank == 2) {
                say("ready");
                for (;;) ::pause();
              }
              try {
                group.barrier();
              } catch (const PeerLost& error) {
                return std::string(error.what());
              }
              return std::string("nobody missed");
            },
            {{"DDP_SHM_FD", std::to_string(page.fd())}, {"DDP_ROUND", "1:abc"}});
  job.await_word(2, "ready");
  page.poison(-1, 0, "host-x", "it has been silent for 5 s");
  for (const int rank : {0, 1}) REQUIRE(job.await_end(rank));  // while the silent one is alive
  ::kill(job.pid(2), SIGKILL);
  const auto outcomes = job.wait();
  CHECK(outcomes[2].signal == SIGKILL);
  for (const std::size_t rank : {0U, 1U}) {
    CHECK_THAT(outcomes[rank].text,
               StartsWith("the node host-x is lost (it has been silent for 5 s)"));
  }
}
#else
TEST_CASE("start: without Gloo between hosts the message says where it was looked for") {
  const StoreServer store;
  Ranks job(2, store,
            [](int) {
              InitOptions options;
              options.backend = "gloo";
              return init_process_group(options).backend();
            },
            {{"DDP_PLUGIN_PATH", "/nowhere"}});
  for (const Outcome& outcome : job.wait()) {
    CHECK_THAT(outcome.text, StartsWith("Unavailable") && Contains("/nowhere"));
  }
}
#endif

TEST_CASE("store: set, get, add, compare_set, check, delete_key") {
  const StoreServer store;
  Ranks job(2, store, [](int rank) {
    ProcessGroup group = init_process_group();
    Store& keys = group.store();
    std::string binary("\0\xff value", 8);
    if (rank == 0) keys.set("binary", binary);
    if (keys.get("binary") != binary) return std::string("get");
    keys.add("counter", rank + 1);
    group.barrier();
    if (keys.add("counter", 0) != 3) return std::string("add");
    if (keys.compare_set("fresh", "", "one") != "one") return std::string("compare_set, absent");
    if (keys.compare_set("fresh", "two", "three") != "one")
      return std::string("compare_set, other");
    if (!keys.check({"binary", "fresh"}) || keys.check({"binary", "missing"})) {
      return std::string("check");
    }
    group.barrier();
    keys.set("mine" + std::to_string(rank), "");
    if (!keys.delete_key("mine" + std::to_string(rank)) ||
        keys.delete_key("mine" + std::to_string(rank))) {
      return std::string("delete_key");
    }
    return std::string(keys.num_keys() >= 3 ? "ok" : "num_keys");
  });
  for (const Outcome& outcome : job.wait()) CHECK(outcome.text == "ok");
}

TEST_CASE("store: a wait in vain names the key, and the connection stays good") {
  const StoreServer store;
  Ranks job(1, store, [](int) {
    ProcessGroup group = init_process_group();
    Store& keys = group.store();
    keys.set("here", "1");
    std::string message;
    try {
      keys.wait({"here", "never"}, std::chrono::milliseconds(200));
    } catch (const Timeout& error) {
      message = error.what();
    }
    return message + "|" + keys.get("here");
  });
  const std::string text = job.wait()[0].text;
  CHECK_THAT(text, Contains("never") && !Contains("\"/here\"") && Contains("|1"));
}

TEST_CASE("store: its loss is told as such, at once and again") {
  StoreServer store;
  Ranks job(1, store, [](int) {
    ProcessGroup group = init_process_group();
    say("ready");
    std::string first;
    try {
      group.store().wait({"never"});
    } catch (const Unavailable&) {
      first = "lost";
    }
    group.store().set("a", "b");
    return first;
  });
  job.await_word(0, "ready");
  store.kill();
  CHECK_THAT(job.wait()[0].text, StartsWith("Unavailable") && Contains("is lost"));
}

TEST_CASE("store: what is over the limits never leaves the process") {
  const StoreServer store;
  Ranks job(1, store, [](int) {
    ProcessGroup group = init_process_group();
    Store& keys = group.store();
    const std::string longest(8191, 'k');  // with its slash: 8 KiB
    keys.set(longest, std::string(8U << 20, 'v'));
    if (keys.get(longest).size() != 8U << 20) return std::string("at the limit");
    int refused = 0;
    try {
      keys.set(longest + "k", "");
    } catch (const InvalidUse&) {
      ++refused;
    }
    try {
      keys.set("a", std::string((8U << 20) + 1, 'v'));
    } catch (const InvalidUse&) {
      ++refused;
    }
    return std::to_string(refused) + keys.compare_set("still", "", " alive");
  });
  CHECK(job.wait()[0].text == "2 alive");
}

TEST_CASE("group: a moved-from group says so") {
  const StoreServer store;
  Ranks job(1, store, [](int) {
    ProcessGroup group = init_process_group();
    const ProcessGroup other = std::move(group);
    try {
      group.barrier();  // NOLINT: on purpose
    } catch (const InvalidUse& error) {
      return other.backend() + ": " + error.what();
    }
    return std::string("no throw");
  });
  CHECK_THAT(job.wait()[0].text, StartsWith("alone: ") && Contains("moved from"));
}

}  // namespace
}  // namespace ddp::testing
