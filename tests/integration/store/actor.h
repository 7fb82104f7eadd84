// A pair is two keys that are always written together, by MULTI_SET, and read together, by
// MULTI_GET: one name with one value, as long as a request with several keys is one step.
//
// A client that does random things to a few names of a store, leaves at random bytes, and writes
// down what it asked and what it was told.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/core/tcpstore_wire.h"
#include "tests/integration/store/history.h"
#include "tests/integration/store/raw_connection.h"

namespace ddp::store_test {

// What all actors share.
struct Stage {
  std::uint16_t port = 0;
  std::int64_t operations = 0;  // when to end
  std::atomic<std::int64_t> begun{0};
};

class Actor {
 public:
  Actor(Stage& stage, rendezvous::StoreDialect dialect, std::uint64_t seed, int number);

  // Until the stage has had its operations.
  void play();

  struct Entry {
    std::int64_t name = 0;
    Operation operation;
  };
  [[nodiscard]] const std::vector<Entry>& record() const { return record_; }

  struct Counts {
    int half_sent = 0;   // connections cut within a request
    int unanswered = 0;  // cut behind it
    int closed = 0;      // by the store
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  // A request, and the operation that it stands for.
  struct Step {
    Operation operation;
    std::string bytes;
  };

  void connect();
  void act();
  void wait();
  void barrier();
  void perform(std::vector<Step> steps);
  void leave_within(std::vector<Step> steps);
  void settle_wait(Operation ended, Operation cancelled);
  bool read_reply(Operation& operation);
  void end_of_connection();

  [[nodiscard]] Step step(rendezvous::StoreRequest request, Operation operation) const;
  [[nodiscard]] Step write();
  [[nodiscard]] Step look();
  [[nodiscard]] Step change();
  [[nodiscard]] std::string some_value();
  [[nodiscard]] bool is_queue() const;  // the last of the names; the others are keys
  [[nodiscard]] bool is_pair() const;   // the last but one
  [[nodiscard]] std::string name() const;
  // The keys behind the name, as a list on the wire, and how many there are.
  [[nodiscard]] std::string keys() const;
  [[nodiscard]] std::size_t number_of_keys() const { return is_pair() ? 2 : 1; }
  [[nodiscard]] int dice(int sides) {
    return static_cast<int>(random_() % static_cast<unsigned>(sides));
  }
  void note(Operation operation);
  [[nodiscard]] bool legacy() const { return dialect_ != rendezvous::StoreDialect::c; }

  Stage& stage_;
  rendezvous::StoreDialect dialect_;
  std::mt19937_64 random_;
  std::int64_t unique_;
  std::int64_t name_ = 0;
  std::string known_;  // the value that was seen last
  std::unique_ptr<RawConnection> connection_;
  std::vector<Entry> record_;
  Counts counts_;
};

}  // namespace ddp::store_test
