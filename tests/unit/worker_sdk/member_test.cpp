#include <catch2/catch.hpp>
#include <ddp/error.hpp>

#include "worker_sdk/core/member.h"

namespace ddp::sdk {
namespace {

using Catch::Matchers::Contains;

Member member(int rank, const std::string& system, const std::string& node = "") {
  Member made;
  made.rank = rank;
  made.host = "host-" + system;
  made.system = system;
  made.node = node.empty() ? system : node;
  made.backend = "auto";
  made.no_devices = "no driver";
  return made;
}

std::string why(const std::vector<Member>& members) {
  try {
    static_cast<void>(choose_backends(members));
  } catch (const ddp::Error& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

TEST_CASE("member: a record survives the store") {
  Member before = member(5, "boot:net", "0123");
  before.pid = 4'000'000'000;
  before.address = "fe80::1";
  before.sdk = "0.1.0";
  before.devices = 8;
  before.no_devices = "a \"quoted\" reason";
  before.control_page = "1:2";
  const Member after = decode_member(5, encode_member(before));
  CHECK(after.rank == 5);
  CHECK(after.host == before.host);
  CHECK(after.node == before.node);
  CHECK(after.system == before.system);
  CHECK(after.pid == before.pid);
  CHECK(after.address == before.address);
  CHECK(after.backend == before.backend);
  CHECK(after.sdk == before.sdk);
  CHECK(after.devices == 8);
  CHECK(after.no_devices == before.no_devices);
  CHECK(after.control_page == before.control_page);
}

TEST_CASE("member: unknown members are ignored, nonsense is refused") {
  CHECK(decode_member(0, R"({"host":"a","later":[1]})").host == "a");
  CHECK(decode_member(0, R"({"host":7,"pid":"x"})").pid == 0);
  for (const char* text : {"", "{", "[]", "null", "\xff\xfe"}) {
    CHECK_THROWS_AS(decode_member(0, text), Unavailable);
    CHECK_THROWS_AS(decode_record(text), Unavailable);
  }
}

TEST_CASE("member: the record of shared memory survives the store") {
  const SharedMemoryRecord record{77, 5, 1ULL << 40, "00ff", 6};
  const SharedMemoryRecord after = decode_record(encode_record(record));
  CHECK(after.pid == 77);
  CHECK(after.fd == 5);
  CHECK(after.size == 1ULL << 40);
  CHECK(after.token == "00ff");
  CHECK(after.control_fd == 6);
}

TEST_CASE("member: two agents' ranks are on two hosts, whatever the kernel says") {
  CHECK_FALSE(same_host(member(0, "boot", "agent-a"), member(1, "boot", "agent-b")));
  CHECK(same_host(member(0, "boot", "agent-a"), member(1, "boot", "agent-a")));
}

TEST_CASE("member: without two agents, boot and network namespace decide") {
  CHECK(same_host(member(0, "boot"), member(1, "boot")));
  CHECK_FALSE(same_host(member(0, "boot:1"), member(1, "boot:2")));
  CHECK(same_host(member(0, "boot", "agent-a"), member(1, "boot")));
}

TEST_CASE("member: local ranks are found by host, in order") {
  const std::vector<Member> members{member(0, "a"), member(1, "b"), member(2, "a"), member(3, "b")};
  CHECK(local_ranks(members, 2) == std::vector<int>{0, 2});
  CHECK(local_ranks(members, 1) == std::vector<int>{1, 3});
}

TEST_CASE("member: a control page is used only if all local ranks have the same") {
  std::vector<Member> members{member(0, "a"), member(1, "a")};
  CHECK_FALSE(share_control_page(members, {0, 1}));
  members[0].control_page = "1:2";
  CHECK_FALSE(share_control_page(members, {0, 1}));
  members[1].control_page = "1:2";
  CHECK(share_control_page(members, {0, 1}));
  members[1].control_page = "1:3";
  CHECK_FALSE(share_control_page(members, {0, 1}));
}

TEST_CASE("choice: one host shares memory, several don't") {
  CHECK(choose_backends({member(0, "a"), member(1, "a")}).shared_memory);
  CHECK_FALSE(choose_backends({member(0, "a"), member(1, "b")}).shared_memory);
  CHECK_FALSE(choose_backends({member(0, "a"), member(1, "a")}).must_share);
}

TEST_CASE("choice: a back-end asked for by name is that one or an error") {
  std::vector<Member> members{member(0, "a"), member(1, "a")};
  const auto ask = [&members](const std::string& name) {
    for (Member& each : members) each.backend = name;
  };
  ask("gloo");
  CHECK_FALSE(choose_backends(members).shared_memory);
  ask("shm");
  CHECK(choose_backends(members).must_share);
  members[1].node = members[1].system = "b";
  CHECK_THAT(why(members), Contains("\"shm\" needs all ranks on one host"));
  ask("nccl");
  CHECK_THAT(why(members), Contains("rank 0 on host-a can use no GPU: no driver"));
}

TEST_CASE("choice: ranks that ask for different back-ends are told who") {
  std::vector<Member> members{member(0, "a"), member(1, "a")};
  members[1].backend = "gloo";
  CHECK_THROWS_AS(choose_backends(members), Mismatch);
  CHECK_THAT(why(members), Contains("rank 0 asks for the backend \"auto\", but rank 1"));
}

TEST_CASE("choice: NCCL where every rank has a GPU of its own") {
  std::vector<Member> members{member(0, "a"), member(1, "a"), member(2, "b")};
  for (Member& each : members) each.devices = 2;
  CHECK(choose_backends(members).nccl);
  members[2].devices = 0;
  CHECK_FALSE(choose_backends(members).nccl);
  members[2].devices = 1;
  CHECK(choose_backends(members).nccl);
  members[0].devices = members[1].devices = 1;
  CHECK_FALSE(choose_backends(members).nccl);
  for (Member& each : members) each.backend = "nccl";
  CHECK_THAT(why(members), Contains("sees 1 GPU, but 2 ranks are on that host"));
}

TEST_CASE("death notice: the agent's words are understood") {
  const auto killed = decode_death_notice(R"({"rank":3,"host":"h","signal":9,"message":""})");
  REQUIRE(killed);
  CHECK(killed->rank == 3);
  CHECK(killed->host == "h");
  CHECK(killed->reason == "killed by signal 9");
  CHECK(decode_death_notice(R"({"rank":3,"message":"out of memory"})")->reason == "out of memory");
  CHECK_FALSE(decode_death_notice("garbage"));
}

TEST_CASE("member: a death is told by rank, by node, or as far as it is known") {
  CHECK(describe(Death{3, "h", "killed by SIGKILL"}) == "rank 3 on h is lost (killed by SIGKILL)");
  CHECK(describe(Death{-1, "h", "it went silent"}) == "the node h is lost (it went silent)");
  CHECK(describe(Death{-1, {}, "who knows"}) == "a rank is lost (who knows)");
}

}  // namespace
}  // namespace ddp::sdk
