// Gloo's Store interface over the callbacks of ddp_store_v1, bounded by one deadline for the whole
// set-up.
#pragma once

#include <gloo/rendezvous/store.h>

#include <map>
#include <string>
#include <vector>

#include "worker_sdk/backends/seam_store.h"

namespace ddp::backends {

// Gloo waits for a key and then gets it; the value is kept from the wait, so that each key costs
// one trip.
class GlooStore : public gloo::rendezvous::Store {
 public:
  GlooStore(const ddp_store_v1& store, const Deadline& deadline)
      : store_(store), deadline_(deadline) {}

  void set(const std::string& key, const std::vector<char>& data) override;
  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override;
  // Gloo's own timeout is ignored: the deadline bounds all steps together.
  void wait(const std::vector<std::string>& keys, const Milliseconds& timeout) override;

  // The addresses of rank `i`'s sockets as it published them; empty if they never came.
  [[nodiscard]] std::vector<char> addresses_of(int rank) const;

 private:
  const std::vector<char>& fetch(const std::string& key);

  const ddp_store_v1& store_;
  const Deadline& deadline_;
  std::map<std::string, std::vector<char>> known_;
};

}  // namespace ddp::backends
