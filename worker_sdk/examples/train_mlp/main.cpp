#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <ddp/ddp.hpp>

#include "mlp.h"
#include "options.h"
#include "progress_bar.h"
#include "stroke_digits.h"
#include "trainer.h"

namespace {

using namespace train_mlp;

constexpr double kStatedAccuracy = 0.95;
constexpr std::size_t kTestSamples = 3000;
constexpr float kLinearLearningRate = 0.03f;  // a linear model diverges sooner

// Every rank says what is wrong with it, because any of them may be the one that the launcher sees
// fail first. As one string: standard error is unbuffered, and pieces of lines would mix.
void complain(const std::string& message) {
  std::cerr << "train_mlp: " + message + "\n";
}

std::string decimals(double value, int places) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", places, value);
  return text;
}

std::string right_aligned(int value, int widest) {
  const std::string text = std::to_string(value);
  return std::string(std::to_string(widest).size() - text.size(), ' ') + text;
}

// The epochs as rank 0 shows them: a bar while one runs, a line when it is done.
class EpochReport {
 public:
  EpochReport(std::string name, int epochs)
      : name_(std::move(name)), epochs_(epochs), bar_(std::cout, isatty(STDOUT_FILENO) == 1) {}

  TrainingObserver observer(bool with_lines) {
    TrainingObserver observer;
    observer.on_step = [this](int epoch, std::size_t step, std::size_t steps) {
      bar_.show(title(epoch), step, steps);
    };
    observer.on_epoch = [this, with_lines](const EpochResult& result) {
      bar_.clear();
      if (!with_lines) return;
      std::cout << title(result.epoch) << "  loss " << decimals(result.loss, 4)
                << "  test accuracy " << decimals(result.test_accuracy * 100, 1) << " %"
                << std::endl;
    };
    return observer;
  }

 private:
  [[nodiscard]] std::string title(int epoch) const {
    return name_ + " epoch " + right_aligned(epoch, epochs_) + "/" + std::to_string(epochs_);
  }

  std::string name_;
  int epochs_;
  ProgressBar bar_;
};

void print_configuration(const ddp::ProcessGroup& group, const Options& options,
                         std::size_t parameters) {
  const auto parts = static_cast<std::size_t>(group.world_size()) *
                     static_cast<std::size_t>(options.plan.accumulate);
  const std::size_t part = part_size(options.plan.batch_size, parts);
  const int gpus = ddp::cuda::device_count();
  std::cout << "train_mlp: world size " << group.world_size() << ", backend "
            << group.host_backend() << ", "
            << (gpus == 0 ? "no GPU: CPU" : "CPU, though there are GPUs: " + std::to_string(gpus))
            << "\n"
            << "data: " << options.samples << " drawn digits to train on, " << kTestSamples
            << " by other writers to test, " << kImageSide << "x" << kImageSide << " grey, seed "
            << options.plan.seed << "\n"
            << "model: " << kImagePixels << "-" << options.hidden << "-" << kClasses << ", "
            << parameters << " parameters; batch " << parts * part << " = " << parts << " x "
            << part << ", learning rate " << options.plan.learning_rate << ", momentum "
            << options.plan.momentum << std::endl;
}

bool write_parameters(const std::vector<float>& parameters, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(parameters.data()),
             static_cast<std::streamsize>(parameters.size() * sizeof(float)));
  return static_cast<bool>(file.flush());
}

// True unless the accuracy was promised and missed.
bool report_accuracy(const Options& options, double accuracy, double linear_accuracy,
                     double seconds) {
  const bool promised = options.trains_as_stated();
  std::cout << "accuracy " << decimals(accuracy * 100, 1)
            << " % (stated: " << decimals(kStatedAccuracy * 100, 1) << " %"
            << (promised ? "" : " with the default settings") << "), linear model "
            << decimals(linear_accuracy * 100, 1) << " %, " << decimals(seconds, 1) << " s"
            << std::endl;
  return !promised || accuracy >= kStatedAccuracy;
}

int run(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  ddp::ProcessGroup group = ddp::init_process_group();
  const DigitSet train = make_stroke_digits(options.samples, Split::train, options.plan.seed);
  const DigitSet test = make_stroke_digits(kTestSamples, Split::test, options.plan.seed);
  Mlp linear({kImagePixels, kClasses}, options.plan.seed);
  Mlp mlp({kImagePixels, options.hidden, kClasses}, options.plan.seed);
  if (group.is_main()) print_configuration(group, options, mlp.parameters().size());
  if (group.is_main() && !options.sheet_file.empty() &&
      !write_image_sheet(train, 40, 20, options.sheet_file)) {
    complain("cannot write the images to " + options.sheet_file);
    return 1;
  }

  TrainingPlan linear_plan = options.plan;
  linear_plan.learning_rate = kLinearLearningRate;
  EpochReport linear_report("linear", linear_plan.epochs);
  EpochReport mlp_report("mlp", options.plan.epochs);
  TrainingObserver linear_observer;
  TrainingObserver mlp_observer;
  if (group.is_main()) {
    linear_observer = linear_report.observer(false);
    mlp_observer = mlp_report.observer(true);
  }
  const double linear_accuracy =
      Trainer(group, train, test, linear_plan).train(linear, linear_observer);
  const double accuracy = Trainer(group, train, test, options.plan).train(mlp, mlp_observer);
  group.barrier();
  if (!group.is_main()) return 0;

  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const bool reached = report_accuracy(options, accuracy, linear_accuracy, elapsed.count());
  if (!options.dump_file.empty() && !write_parameters(mlp.parameters(), options.dump_file)) {
    complain("cannot write the parameters to " + options.dump_file);
    return 1;
  }
  if (!reached) complain("the stated accuracy was missed");
  return reached ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto parsed = parse_options(std::vector<std::string>(argv + 1, argv + argc));
  if (const auto* error = std::get_if<UsageError>(&parsed)) {
    complain(error->message);
    return 2;
  }
  const auto& options = std::get<Options>(parsed);
  if (options.help) {
    std::cout << usage_text() << std::flush;
    return 0;
  }
  try {
    return run(options);
  } catch (const std::exception& error) {
    complain(error.what());
    return 1;
  }
}
