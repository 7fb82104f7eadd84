// What a signal to the launcher means for the job.
#pragma once

#include <cstdint>
#include <vector>

namespace ddp::launcher {

enum class SignalRole : std::uint8_t {
  not_ours,   // can't be caught, belongs to a fault, or has a use of its own here
  nothing,    // of no meaning for a job
  passed_on,  // to the workers, and the job goes on: a batch system's warning
  suspends,   // Ctrl-Z
  resumes,
  ends_job,
};

// `listed` are those of --signals-to-handle.
[[nodiscard]] SignalRole role_of_signal(std::int32_t signal,
                                        const std::vector<std::int32_t>& listed = {});

// What workers get of one that ends the job: itself if programs expect it as a request to end,
// SIGTERM in place of all others.
[[nodiscard]] std::int32_t ending_signal_for_workers(std::int32_t signal,
                                                     const std::vector<std::int32_t>& listed);

// A person's, or a batch system's: the second one of these means "now". What comes with a closed
// terminal comes several times.
[[nodiscard]] bool asks_to_hurry(std::int32_t signal);

}  // namespace ddp::launcher
