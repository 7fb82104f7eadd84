// What workers leave behind: heard out, told to end or killed, and reaped.
#pragma once

#include <functional>
#include <string>

#include "launcher/core/agent_events.h"
#include "launcher/io/pid_namespace.h"
#include "launcher/io/round_workers.h"
#include "launcher/io/strangers.h"

namespace ddp::launcher {

class Remains {
 public:
  // `space` may be null.
  Remains(boost::asio::io_context& context, Strangers& strangers, PidNamespace* space,
          std::function<void(const std::string& text)> on_warning);

  // No worker is alive. `workers` may be null, and outlives the sweep. Calls `on_gone` from the
  // loop when nothing is left but what can't be killed, which is said.
  void sweep(RoundWorkers* workers, const SweepRemains& wanted, std::function<void()> on_gone);
  // In a sweep that is under way: nothing is spared, nobody is heard out any more.
  void kill();

 private:
  enum class Step : std::uint8_t { none, hearing, in_namespace, our_children };

  void sweep_namespace();
  void sweep_our_children();

  boost::asio::io_context& context_;
  Strangers& strangers_;
  PidNamespace* space_;
  std::function<void(const std::string& text)> on_warning_;
  Step step_ = Step::none;
  RoundWorkers* workers_ = nullptr;
  RoundWorkers::Sessions spared_;
  int signal_ = 0;
  std::function<void()> on_gone_;
};

}  // namespace ddp::launcher
