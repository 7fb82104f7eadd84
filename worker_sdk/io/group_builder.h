// Starts a group: from what the environment says to back-ends that carry bytes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ddp/process_group.hpp>

#include "worker_sdk/core/environment.h"
#include "worker_sdk/core/member.h"
#include "worker_sdk/io/control_page.h"
#include "worker_sdk/io/group_state.h"
#include "worker_sdk/io/plugin_loader.h"
#include "worker_sdk/io/tcp_store_client.h"

namespace ddp::sdk {

// One attempt, used once.
class GroupBuilder {
 public:
  // `name` tells the groups of one process apart; the same on all ranks.
  GroupBuilder(World world, Settings settings, std::string name);

  // Collective. Throws as init_process_group.
  [[nodiscard]] std::unique_ptr<GroupState> build();

 private:
  void find_control_page();
  [[nodiscard]] Member describe_self();
  void claim_rank(const Member& self);
  void exchange(const Member& self);
  [[nodiscard]] std::string name_missing(const Keys& keys);
  [[nodiscard]] std::unique_ptr<Backend> make_host_backend(const BackendChoice& choice);
  [[nodiscard]] std::unique_ptr<Backend> make_shared_memory_backend(std::string& why);
  [[nodiscard]] std::unique_ptr<Backend> make_plugin_backend(const ddp_backend_v1& table,
                                                             int device);
  void note(const std::string& text) const;

  World world_;
  Settings settings_;
  std::string prefix_;  // of the group's keys
  std::shared_ptr<TcpStoreClient> client_;
  std::shared_ptr<ControlPageView> agents_page_;  // null: none
  std::vector<Member> members_;
  std::vector<int> locals_;  // ranks on this host
  int position_ = 0;         // of this rank among them
  GroupFacts facts_;
};

// World size 1, no network.
[[nodiscard]] std::unique_ptr<GroupState> build_alone(const Settings& settings);

}  // namespace ddp::sdk
