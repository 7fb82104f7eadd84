#include "launcher/io/farewell.h"

#include <chrono>

namespace ddp::launcher {
namespace {

using std::chrono::milliseconds;

// How long the file of events may take nothing before what is left to write is given up.
constexpr milliseconds kEventsPatience{1000};

// In a hurry: for what is held, then for the words about what was dropped. Nothing of the job is
// alive 2 s after the guardian's death, and the workers' end takes its part.
constexpr milliseconds kHurriedPatience{500};
constexpr milliseconds kLastWords{600};

}  // namespace

Farewell::Farewell(boost::asio::io_context& context, Console& console, EventFile* events)
    : context_(context),
      console_(console),
      events_(events),
      events_timer_(context),
      hurry_timer_(context) {}

bool Farewell::run() {
  context_.restart();
  enter(events_ != nullptr ? Step::events : Step::output);
  context_.run();
  return console_.idle() && (events_ == nullptr || events_->idle());
}

// Called once for each way in which a step can end; the first one counts.
void Farewell::after(Step step) {
  if (step == step_) enter(static_cast<Step>(static_cast<int>(step) + 1));
}

void Farewell::enter(Step step) {
  step_ = step;
  switch (step) {
    case Step::events:
      events_->when_written([this] { after(Step::events); });
      events_timer_.expires_after(kEventsPatience);
      events_timer_.async_wait([this](const boost::system::error_code& error) {
        if (error || step_ != Step::events) return;
        events_->give_up();
        after(Step::events);
      });
      return;
    case Step::output:
      console_.when_written([this] { after(Step::output); });
      return;
    case Step::losses:
      console_.say_losses();
      console_.when_written([this] { after(Step::losses); });
      return;
    case Step::over:
      context_.stop();
      return;
  }
}

void Farewell::hurry() {
  if (hurried_) return;
  hurried_ = true;
  hurry_timer_.expires_after(kHurriedPatience);
  hurry_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) give_up();
  });
}

void Farewell::give_up() {
  if (step_ == Step::events) events_->give_up();
  if (step_ < Step::losses) {
    console_.drop();
    enter(Step::losses);
  }
  hurry_timer_.expires_after(kLastWords);
  hurry_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) after(Step::losses);
  });
}

}  // namespace ddp::launcher
