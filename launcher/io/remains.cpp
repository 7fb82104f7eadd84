#include "launcher/io/remains.h"

#include <utility>

namespace ddp::launcher {

Remains::Remains(boost::asio::io_context& context, Strangers& strangers, PidNamespace* space,
                 std::function<void(const std::string& text)> on_warning)
    : context_(context), strangers_(strangers), space_(space), on_warning_(std::move(on_warning)) {}

void Remains::sweep(RoundWorkers* workers, const SweepRemains& wanted,
                    std::function<void()> on_gone) {
  workers_ = workers;
  spared_ = workers != nullptr ? workers->sessions_of(wanted.spared) : RoundWorkers::Sessions{};
  signal_ = wanted.signal;
  on_gone_ = std::move(on_gone);
  step_ = Step::hearing;
  if (workers == nullptr) return sweep_namespace();
  workers->hear_out([this] { sweep_namespace(); });
}

void Remains::sweep_namespace() {
  if (space_ == nullptr) return sweep_our_children();
  step_ = Step::in_namespace;
  space_->sweep(context_, spared_.theirs, signal_, [this](const std::string& left) {
    if (!left.empty()) {
      on_warning_("what workers left behind could not be killed and may still run: " + left +
                  " (numbers of their own PID namespace)");
    }
    sweep_our_children();
  });
}

void Remains::sweep_our_children() {
  step_ = Step::our_children;
  strangers_.sweep(std::exchange(spared_, {}).ours, signal_, [this] {
    step_ = Step::none;
    std::exchange(on_gone_, nullptr)();
  });
}

void Remains::kill() {
  spared_ = {};
  switch (step_) {
    case Step::none:
      return;
    case Step::hearing:
      return workers_->stop_hearing();
    case Step::in_namespace:
      return space_->spare_nobody();
    case Step::our_children:
      return strangers_.spare_nobody();
  }
}

}  // namespace ddp::launcher
