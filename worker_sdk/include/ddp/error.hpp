// What the SDK throws: one class for each thing that a program can do about it.
//
//   Timeout      somebody did not come in time, nobody is known to be dead
//                → rebuild; retry while starting
//   PeerLost     a rank died, or left while others still needed it
//                → rebuild, or exit non-zero
//   Mismatch     ranks called different things
//                → a bug in the program
//   InvalidUse   a bad argument, variable or order of calls
//                → a bug in the program or its set-up
//   Unavailable  this machine or version cannot do what was asked
//                → read the message, change it
//
// "Rebuild" is to destroy the group and make another one, on every rank that is left. "Exit
// non-zero" lets the launcher restart the job. After any error from a collective its group is
// broken: the contents of the buffer are unspecified, and every later collective of that group
// throws the same class again at once.
//
// The messages are whole sentences for people. Programs must look at the class, never at the text.
#pragma once

#include <stdexcept>
#include <string>

#include <ddp/export.hpp>

namespace ddp {
inline namespace v1 {

// The base of all of them.
class DDP_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() override;
};

// Rebuild. From init_process_group and Store: retry is safe too. The message names who is missing.
class DDP_API Timeout : public Error {
 public:
  using Error::Error;
  Timeout(const Timeout&) = default;
  Timeout& operator=(const Timeout&) = default;
  ~Timeout() override;
};

// Rebuild, or exit with a code other than 0: a rank is gone, and will not come back by itself.
class DDP_API PeerLost : public Error {
 public:
  PeerLost(int rank, std::string host, const std::string& message);
  PeerLost(const PeerLost&) = default;
  PeerLost& operator=(const PeerLost&) = default;
  ~PeerLost() override;

  // The rank that is gone; -1 if a whole node is, or if it is not known which.
  int rank() const noexcept { return rank_; }
  // The host it ran on, as people call it; empty if not known.
  const std::string& host() const noexcept { return host_; }

 private:
  int rank_;
  std::string host_;
};

// A bug: two ranks called different operations, types, counts or roots, or in a different order.
class DDP_API Mismatch : public Error {
 public:
  using Error::Error;
  Mismatch(const Mismatch&) = default;
  Mismatch& operator=(const Mismatch&) = default;
  ~Mismatch() override;
};

// A bug: an argument out of range, an incomplete environment, a call after fork or on a moved-from
// object. It is thrown before anything is sent, so the group stays usable.
class DDP_API InvalidUse : public Error {
 public:
  using Error::Error;
  InvalidUse(const InvalidUse&) = default;
  InvalidUse& operator=(const InvalidUse&) = default;
  ~InvalidUse() override;
};

// What was asked for cannot be had here: no such backend, no GPU, the store's host is lost, a
// launcher that this version does not know.
class DDP_API Unavailable : public Error {
 public:
  using Error::Error;
  Unavailable(const Unavailable&) = default;
  Unavailable& operator=(const Unavailable&) = default;
  ~Unavailable() override;
};

}  // namespace v1
}  // namespace ddp
