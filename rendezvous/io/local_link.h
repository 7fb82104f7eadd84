// The line of an agent to the coordinator in its own process: no socket, no serialisation.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "rendezvous/io/coordinator_link.h"

namespace ddp::rendezvous {

class CoordinatorHost;

class LocalLink final : public CoordinatorLink {
 public:
  // `host` outlives the link.
  LocalLink(boost::asio::io_context& context, CoordinatorHost& host, LinkCallbacks callbacks);
  ~LocalLink() override;

  void start(const std::string& run_id, const NodeDescription& description) override;
  void report(const NodeStatus& status) override;

 private:
  class Line;
  std::shared_ptr<Line> line_;
};

}  // namespace ddp::rendezvous
