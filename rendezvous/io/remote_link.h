// The line of an agent to a coordinator across the network: connects, heartbeats, reconnects.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "rendezvous/io/coordinator_link.h"

namespace ddp::rendezvous {

class RemoteLink final : public CoordinatorLink {
 public:
  // `seed` spreads the reconnects of many nodes; any number will do.
  RemoteLink(boost::asio::io_context& context, Endpoint coordinator, std::uint64_t seed,
             LinkCallbacks callbacks);
  ~RemoteLink() override;

  void start(const std::string& run_id, const NodeDescription& description) override;
  void report(const NodeStatus& status) override;
  [[nodiscard]] bool is_looking_up() const override;

 private:
  class Line;
  std::shared_ptr<Line> line_;
};

}  // namespace ddp::rendezvous
