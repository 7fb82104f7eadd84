#include "worker_sdk/io/group_builder.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include <ddp/cuda.hpp>
#include <ddp/error.hpp>
#include <ddp/version.hpp>

#include "rendezvous/core/key_value_store.h"
#include "worker_sdk/backends/alone.h"
#include "worker_sdk/backends/plugin_backend.h"
#include "worker_sdk/backends/shm/shm_backend.h"
#include "worker_sdk/io/host_facts.h"
#include "worker_sdk/io/local_store.h"

namespace ddp::sdk {
namespace {

// How long after a back-end's failure the news of its cause may still be on its way.
constexpr Milliseconds kNewsGrace{500};

// The control page knows the deaths of the round, the store those of all nodes.
std::optional<Death> find_death(const std::shared_ptr<ControlPageView>& page,
                                KeyValueClient& store) {
  const std::string key(rendezvous::kDeathNotice);
  const Deadline deadline(kNewsGrace);
  do {
    if (page != nullptr && page->poisoned()) return page->death();
    try {
      if (store.check({key})) return decode_death_notice(store.get(key, kNewsGrace));
    } catch (const ddp::Error&) {
      return std::nullopt;  // the store went with the node; the back-end's own words must do
    }
    ::usleep(10'000);
  } while (!deadline.passed());
  return std::nullopt;
}

}  // namespace

GroupBuilder::GroupBuilder(World world, Settings settings, std::string name)
    : world_(std::move(world)),
      settings_(std::move(settings)),
      prefix_("/ddp/1/" + std::move(name) + "/") {}

std::unique_ptr<GroupState> GroupBuilder::build() {
  find_control_page();
  client_ = std::make_shared<TcpStoreClient>(world_.master_address, world_.master_port,
                                             settings_.timeout);
  if (agents_page_ != nullptr) {
    client_->set_watch([page = agents_page_] {
      if (!page->poisoned()) return;
      const Death death = page->death();
      throw PeerLost(death.rank, death.host, describe(death));
    });
  }
  exchange(describe_self());
  locals_ = local_ranks(members_, world_.rank);
  position_ =
      static_cast<int>(std::find(locals_.begin(), locals_.end(), world_.rank) - locals_.begin());
  if (!share_control_page(members_, locals_)) agents_page_.reset();
  facts_.rank = world_.rank;
  facts_.world_size = world_.world_size;
  facts_.local_rank = world_.local_rank.value_or(position_);
  facts_.local_world_size = world_.local_world_size.value_or(static_cast<int>(locals_.size()));
  facts_.timeout = settings_.timeout;

  const BackendChoice choice = choose_backends(members_);
  std::unique_ptr<Backend> host = make_host_backend(choice);
  std::unique_ptr<Backend> device;
  if (choice.nccl) {
    const LoadedPlugin nccl = load_plugin("nccl", settings_.plugin_path);
    if (nccl.table == nullptr) throw Unavailable("NCCL: " + nccl.reason);
    device = make_plugin_backend(*nccl.table, facts_.local_rank);
  }
  note("backend " + (device ? device->name() + ", host memory " : std::string()) + host->name());
  return std::make_unique<GroupState>(facts_, client_, std::move(host), std::move(device));
}

// One that cannot be used is no reason to fail: the ranks can make their own.
void GroupBuilder::find_control_page() {
  if (!settings_.control_page) return;
  try {
    agents_page_ = std::make_shared<ControlPageView>(ControlPageView::of_agent(
        *settings_.control_page, settings_.round, world_.rank, world_.world_size));
  } catch (const Unavailable& error) {
    note(std::string("the launcher's control page cannot be used: ") + error.what());
  }
}

Member GroupBuilder::describe_self() {
  Member self;
  self.rank = world_.rank;
  self.host = host_name();
  self.system = system_identity();
  self.node = settings_.node_id.empty() ? self.system : settings_.node_id;
  self.pid = ::getpid();
  self.address =
      settings_.socket_address.empty() ? client_->local_address() : settings_.socket_address;
  self.backend = settings_.backend;
  self.sdk = ddp::version();
  if (settings_.backend == "auto" || settings_.backend == "nccl") {
    self.devices = cuda::device_count();
    if (self.devices == 0) {
      self.no_devices = cuda::unavailable_reason();
    } else {
      const LoadedPlugin nccl = load_plugin("nccl", settings_.plugin_path);
      if (nccl.table == nullptr) {
        self.devices = 0;
        self.no_devices = nccl.reason;
      }
    }
  }
  if (agents_page_ != nullptr) self.control_page = agents_page_->identity();
  return self;
}

// Two processes with one rank would otherwise wait for a peer that never comes, or mix their bytes.
void GroupBuilder::claim_rank(const Member& self) {
  const std::string key = prefix_ + "member/" + std::to_string(self.rank);
  const std::string record = encode_member(self);
  const std::string stored = client_->compare_set(key, "", record);
  if (stored == record) return;
  const Member holder = decode_member(self.rank, stored);
  if (holder.system == self.system && holder.pid == self.pid) {  // our own, of a failed attempt
    client_->set(key, record);
    return;
  }
  throw Mismatch("process " + std::to_string(self.pid) + " on " + self.host + " claims rank " +
                 std::to_string(self.rank) + ", but process " + std::to_string(holder.pid) +
                 " on " + holder.host + " claims rank " + std::to_string(self.rank) +
                 " too; does a worker start processes that inherit RANK, or do two jobs use the "
                 "store at " +
                 world_.master_address + ":" + std::to_string(world_.master_port) + "?");
}

void GroupBuilder::exchange(const Member& self) {
  claim_rank(self);
  Keys keys;
  for (int rank = 0; rank < world_.world_size; ++rank) {
    keys.push_back(prefix_ + "member/" + std::to_string(rank));
  }
  std::vector<std::string> texts;
  try {
    texts = client_->get_all(keys, settings_.timeout);
  } catch (const Timeout&) {
    throw Timeout("rank " + std::to_string(self.rank) + " on " + self.host + " waited " +
                  in_seconds(settings_.timeout) + " for " + name_missing(keys) +
                  " to start; are they running, and is WORLD_SIZE=" +
                  std::to_string(world_.world_size) + " right?");
  }
  for (int rank = 0; rank < world_.world_size; ++rank) {
    members_.push_back(decode_member(rank, texts[static_cast<std::size_t>(rank)]));
  }
}

std::string GroupBuilder::name_missing(const Keys& keys) {
  constexpr int kMost = 16;
  std::string missing;
  int count = 0;
  for (std::size_t rank = 0; rank < keys.size(); ++rank) {
    if (client_->check({keys[rank]})) continue;
    if (++count <= kMost) missing += (count == 1 ? "" : ", ") + std::to_string(rank);
  }
  if (count > kMost) missing += " and " + std::to_string(count - kMost) + " more";
  return (count == 1 ? "rank " : "ranks ") + missing;
}

std::unique_ptr<Backend> GroupBuilder::make_host_backend(const BackendChoice& choice) {
  if (world_.world_size == 1) return std::make_unique<AloneBackend>();
  std::string why_not_shared = "the ranks are on several hosts";
  if (choice.shared_memory) {
    std::unique_ptr<Backend> shared = make_shared_memory_backend(why_not_shared);
    if (shared) return shared;
    if (choice.must_share) throw Unavailable("the backend \"shm\": " + why_not_shared);
    note("no shared memory: " + why_not_shared);
  }
  const LoadedPlugin gloo = load_plugin("gloo", settings_.plugin_path);
  if (gloo.table != nullptr) return make_plugin_backend(*gloo.table, -1);
  const std::string reason = settings_.backend == "gloo" ? "" : why_not_shared + ", and ";
  throw Unavailable(reason + "the backend \"gloo\" cannot be used: " + gloo.reason);
}

std::unique_ptr<Backend> GroupBuilder::make_shared_memory_backend(std::string& why) {
  if (locals_.size() > rendezvous::kControlPageMaxWorkers) {
    why = "a control page has bells for " + std::to_string(rendezvous::kControlPageMaxWorkers) +
          " ranks of a host, here are " + std::to_string(locals_.size());
    return nullptr;
  }
  shm::Place place;
  place.position = position_;
  for (const int rank : locals_) {
    const Member& member = members_[static_cast<std::size_t>(rank)];
    place.peers.push_back({rank, member.pid, member.host});
  }
  std::optional<shm::SharedGroup> group =
      shm::meet(*client_, prefix_, place, agents_page_, settings_.timeout, why);
  if (!group) return nullptr;
  const bool may_spin = static_cast<int>(locals_.size()) <= allowed_cpus();
  auto backend = std::make_unique<shm::ShmBackend>(*std::move(group), std::move(place), may_spin);
  // All have mapped it and watch each other; from here on a lost rank is noticed.
  backend->run(Call{}, settings_.timeout);
  return backend;
}

std::unique_ptr<Backend> GroupBuilder::make_plugin_backend(const ddp_backend_v1& table,
                                                           int device) {
  PluginOptions options;
  options.rank = facts_.rank;
  options.world_size = facts_.world_size;
  options.local_rank = facts_.local_rank;
  options.local_world_size = facts_.local_world_size;
  options.device = device;
  options.timeout = settings_.timeout;
  options.local_address = members_[static_cast<std::size_t>(facts_.rank)].address;
  options.key_prefix = prefix_ + table.name + "/";
  options.store = client_.get();
  if (agents_page_ != nullptr) {
    options.somebody_died = [page = agents_page_] { return page->poisoned(); };
  }
  options.find_death = [page = agents_page_, store = client_] { return find_death(page, *store); };
  return std::make_unique<PluginBackend>(table, std::move(options));
}

void GroupBuilder::note(const std::string& text) const {
  if (settings_.debug == DebugLevel::off) return;
  std::fprintf(stderr, "ddp: rank %d of %d: %s\n", world_.rank, world_.world_size, text.c_str());
}

std::unique_ptr<GroupState> build_alone(const Settings& settings) {
  GroupFacts facts;
  facts.timeout = settings.timeout;
  return std::make_unique<GroupState>(facts, std::make_shared<LocalStore>(settings.timeout),
                                      std::make_unique<AloneBackend>(), nullptr);
}

}  // namespace ddp::sdk
