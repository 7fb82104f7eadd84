#include "launcher/core/oom_counter.h"

#include <catch2/catch.hpp>

using ddp::launcher::count_of_oom_kills;
using ddp::launcher::memory_cgroups;

TEST_CASE("oom_counter: the cgroup of a process, in either version or in both") {
  const auto both = memory_cgroups(
      "9:name=systemd:/a\n8:cpu,memory:/jobs/4711\n5:memory_other:/no\n0::/user.slice/x:y\n");
  CHECK(both.v1 == "/jobs/4711");
  CHECK(both.v2 == "/user.slice/x:y");
  CHECK(memory_cgroups("0::/\n").v2 == "/");
  CHECK_FALSE(memory_cgroups("0::/\n").v1);
  for (const char* odd : {"", "\n", "0", "0:", ":::", "1::/x", "memory:/x"}) {
    INFO(odd);
    CHECK_FALSE(memory_cgroups(odd).v1);
    CHECK_FALSE(memory_cgroups(odd).v2);
  }
}

TEST_CASE("oom_counter: the count in each of the kernel's files") {
  CHECK(count_of_oom_kills("low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n") == 2);
  CHECK(count_of_oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 18446744073709551615") ==
        18446744073709551615U);
  CHECK(count_of_oom_kills("nr_free_pages 5\noom_kill 11\n") == 11);
  for (const char* odd : {"", "oom_kill", "oom_kill ", "oom_kill x", "oom_kill 1 2", "oom_kill -1",
                          "oom_kill_disable 1"}) {
    INFO(odd);
    CHECK_FALSE(count_of_oom_kills(odd));
  }
}
