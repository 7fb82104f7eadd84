#include "rendezvous/io/worker_store.h"

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
                                       const std::string& already_read) {
    owner->room_->admit(std::move(socket), dialect, already_read);
  };
  routes.agent = options.agent_acceptor;
  routes.legacy = options.legacy;
  auto listener = Listener::open(context, {options.address, options.port}, std::move(routes));
  if (!listener) return listener.error();
  store->listener_ = std::move(listener).value();
  return store;
}

WorkerStore::WorkerStore(Key, const StoreLimits& limits)
    : limits_(limits), room_(std::make_shared<StoreRoom>(limits)) {}

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
  room_ = std::make_shared<StoreRoom>(limits_);
}

void WorkerStore::set_notice(std::string_view key, std::string_view value) {
  room_->set_notice(key, value);
}

std::size_t WorkerStore::number_of_sessions() const {
  return room_->number_of_sessions();
}

}  // namespace ddp::rendezvous
