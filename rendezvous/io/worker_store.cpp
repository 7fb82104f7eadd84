#include "rendezvous/io/worker_store.h"

#include <algorithm>
#include <utility>

#include "rendezvous/io/listener.h"
#include "rendezvous/io/store_session.h"

namespace ddp::rendezvous {

Result<std::unique_ptr<WorkerStore>> WorkerStore::open(boost::asio::io_context& context,
                                                       const WorkerStoreOptions& options) {
  auto store = std::make_unique<WorkerStore>(Key{}, options.limits);
  ListenerRoutes routes;
  // The listener dies before the store does, and calls nobody afterwards.
  routes.store = [owner = store.get()](boost::asio::ip::tcp::socket socket, StoreDialect dialect,
                                       ConnectionId id, const std::string& already_read) {
    owner->room_->admit({id.value}, std::move(socket), dialect, already_read);
  };
  routes.close_idle_store = [owner = store.get()](ConnectionId id) {
    return owner->room_->close_if_idle({id.value});
  };
  routes.agent = options.agent_acceptor;
  routes.legacy = options.legacy;
  routes.on_warning = options.on_warning;
  const std::size_t limit =
      std::min(options.connections, connections_within_limit_of_files(options.reserved_files));
  auto listener = Listener::open(context, {options.address, options.port}, std::move(routes), limit,
                                 options.fresh_ports);
  if (!listener) return listener.error();
  store->listener_ = std::move(listener).value();
  return store;
}

WorkerStore::WorkerStore(Key, const StoreLimits& limits) : limits_(limits), room_(new_room()) {}

std::shared_ptr<StoreRoom> WorkerStore::new_room() {
  // A room is closed before this is gone, but after the listener is.
  return std::make_shared<StoreRoom>(
      limits_, StoreRoomHandlers{[this](StoreSessionId id) {
                                   if (listener_) listener_->store_client_in_use({id.value});
                                 },
                                 [this](StoreSessionId id) {
                                   if (listener_) listener_->store_client_left({id.value});
                                 }});
}

WorkerStore::~WorkerStore() {
  listener_.reset();
  room_->close_all();
}

const Endpoint& WorkerStore::endpoint() const {
  return listener_->endpoint();
}

void WorkerStore::renew() {
  listener_->refuse_earlier_store_clients();
  room_->close_all();
  room_ = new_room();
}

void WorkerStore::set_notice(std::string_view key, std::string_view value) {
  room_->set_notice(key, value);
}

std::size_t WorkerStore::number_of_sessions() const {
  return room_->number_of_sessions();
}

}  // namespace ddp::rendezvous
