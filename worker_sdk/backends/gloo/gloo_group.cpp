#include "worker_sdk/backends/gloo/gloo_group.h"

#include <gloo/broadcast.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "worker_sdk/backends/gloo/gloo_store.h"
#include "worker_sdk/backends/gloo/local_address.h"
#include "worker_sdk/backends/gloo/ordered_all_reduce.h"

namespace ddp::backends {
namespace {

// Where a rank that gave up says so: its closing sockets look like a death to the others.
constexpr const char* kGaveUpKey = "gloo/gave_up";
constexpr Milliseconds kGaveUpWait{20};
// Gloo's own collectives use prefixes below 0x10.
constexpr uint64_t kAgreementSlot = uint64_t{0x7d} << 56;

// This rank's part of what `peer` published: one address for each rank but itself, in rank order.
std::vector<char> address_for(const std::vector<char>& published, int peer, int rank,
                              int world_size) {
  const size_t size = published.size() / static_cast<size_t>(world_size - 1);
  const size_t index = static_cast<size_t>(rank > peer ? rank - 1 : rank);
  if (size == 0 || (index + 1) * size > published.size()) return {};
  const auto begin = published.begin() + static_cast<std::ptrdiff_t>(index * size);
  return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}

std::string name_of_address(const std::vector<char>& bytes) {
  const gloo::transport::tcp::Address address(bytes);
  return socket_name(&address.getSockaddr(), sizeof address.getSockaddr());
}

size_t bytes_of(const ddp_call_v1& call) {
  return call.count * sdk::size_of(type_of(call));
}

void copy_to_output(const ddp_call_v1& call) {
  if (call.count > 0 && call.input != call.output) {
    std::memmove(call.output, call.input, bytes_of(call));
  }
}

template <class T>
void scale(const ddp_call_v1& call) {
  const T* from = static_cast<const T*>(call.input);
  T* to = static_cast<T*>(call.output);
  const T factor = static_cast<T>(call.premul);
  for (size_t i = 0; i < call.count; ++i) to[i] = from[i] * factor;
}

sdk::ReduceFunction reduction_for(const ddp_call_v1& call) {
  const DataType type = type_of(call);
  const bool premul = call.op == DDP_PREMUL_SUM;
  const bool scalable = type == DataType::float32 || type == DataType::float64;
  const sdk::ReduceFunction found = sdk::find_reduction(type, op_of(call));
  if (found != nullptr && (!premul || scalable)) return found;
  throw Failure(DDP_INVALID_USE, std::string("the gloo backend has no all_reduce with ") +
                                     (premul ? "premul_sum" : sdk::name_of(op_of(call))) + " for " +
                                     sdk::name_of(type));
}

}  // namespace

GlooGroup::GlooGroup(const ddp_group_options_v1& options)
    : rank_(options.rank),
      world_size_(options.world_size),
      timeout_ms_(options.timeout_ms),
      store_(options.store) {
  if (world_size_ == 1) return;
  const Deadline deadline(effective_timeout(-1, timeout_ms_));
  const std::string wanted = options.local_address != nullptr ? options.local_address : "";
  const bool one_host = options.local_world_size == world_size_;
  try {
    connect(choose_local_address(wanted, one_host), deadline);
    // Nobody leaves the set-up while another is inside it: that one would see its peers hang up.
    agree(sdk::Fingerprint{}, deadline);
  } catch (const Failure&) {
    drop_mesh();
    throw;
  } catch (const std::exception& error) {
    throw break_mesh("the set-up of the Gloo group", deadline, error.what());
  }
}

GlooGroup::~GlooGroup() {
  outgoing_buffer_.reset();
  incoming_buffer_.reset();
  context_.reset();
}

void GlooGroup::connect(const std::string& local_address, const Deadline& deadline) {
  const gloo::transport::tcp::attr attributes(local_address.c_str());
  std::shared_ptr<gloo::transport::Device> device;
  try {
    device = gloo::transport::tcp::CreateDevice(attributes);
  } catch (const std::exception& error) {
    throw Failure(DDP_UNAVAILABLE, "Gloo cannot use the local address " + local_address +
                                       ": it is no address of this host (" + error.what() + ")");
  }
  context_ = std::make_shared<gloo::rendezvous::Context>(rank_, world_size_);
  // Gloo waits five times this for a peer that published its address and then died.
  context_->setTimeout(Milliseconds(std::max<int64_t>(1, deadline.remaining().count() / 5)));
  GlooStore store(*store_, deadline);
  context_->connectFullMesh(store, device);
  collect_sockets(store);
  outgoing_buffer_ = context_->createUnboundBuffer(&outgoing_, sizeof outgoing_);
  incoming_buffer_ = context_->createUnboundBuffer(&incoming_, sizeof incoming_);
}

void GlooGroup::collect_sockets(const GlooStore& store) {
  std::vector<std::string> local_names;
  std::vector<std::string> peer_names;
  peer_texts_.assign(static_cast<size_t>(world_size_), std::string());
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    const auto theirs = address_for(store.addresses_of(peer), peer, rank_, world_size_);
    peer_names.push_back(name_of_address(theirs));
    peer_texts_[static_cast<size_t>(peer)] = gloo::transport::tcp::Address(theirs).str();
    const auto ours = address_for(store.addresses_of(rank_), rank_, peer, world_size_);
    local_names.push_back(name_of_address(ours));
  }
  sockets_.collect(local_names, peer_names);
}

void GlooGroup::all_reduce(const ddp_call_v1& call) {
  check_call(call, world_size_);
  check_buffers(call);
  const sdk::ReduceFunction reduce = reduction_for(call);
  sdk::Call described{sdk::CallKind::all_reduce, type_of(call), op_of(call)};
  described.count = call.count;
  const Deadline deadline = deadline_of(call);
  collective(described, deadline, [&] {
    if (call.count == 0) return;
    const void* input = call.input;
    if (call.op == DDP_PREMUL_SUM) {
      call.dtype == DDP_FLOAT32 ? scale<float>(call) : scale<double>(call);
      input = call.output;
    }
    if (world_size_ == 1) {
      if (input == call.input) copy_to_output(call);
      return;
    }
    ordered_all_reduce(
        context_, {reduce, sdk::size_of(type_of(call)), input, call.output, call.count, sequence_},
        deadline);
  });
}

void GlooGroup::broadcast(const ddp_call_v1& call) {
  check_call(call, world_size_);
  check_buffers(call);
  sdk::Call described{sdk::CallKind::broadcast, type_of(call), ReduceOp::sum, call.root};
  described.count = call.count;
  const Deadline deadline = deadline_of(call);
  collective(described, deadline, [&] {
    if (rank_ == call.root) copy_to_output(call);
    if (call.count == 0 || world_size_ == 1) return;
    gloo::BroadcastOptions options(context_);
    options.setOutput(static_cast<uint8_t*>(call.output), bytes_of(call));
    options.setRoot(call.root);
    options.setTag(static_cast<uint32_t>(sequence_));
    options.setTimeout(deadline.remaining());
    gloo::broadcast(options);
  });
}

void GlooGroup::barrier(const ddp_call_v1& call) {
  check_call(call, world_size_);
  // To agree, each rank must have heard from every other: that is a barrier.
  collective(sdk::Call{}, deadline_of(call), [] {});
}

void GlooGroup::abort() {
  aborted_ = true;
  sockets_.cut();
}

template <class Body>
void GlooGroup::collective(sdk::Call call, const Deadline& deadline, Body&& body) {
  refuse_if_broken();
  call.sequence = ++sequence_;
  const sdk::Fingerprint fingerprint = sdk::fingerprint_of(call);
  try {
    if (world_size_ > 1) agree(fingerprint, deadline);
    body();
  } catch (const Failure&) {
    throw;
  } catch (const std::exception& error) {
    throw break_mesh(sdk::describe(fingerprint), deadline, error.what());
  }
}

// In round k each rank sends what it knows to the one 2^k above it: after log2(n) rounds all know
// of all.
void GlooGroup::agree(const sdk::Fingerprint& fingerprint, const Deadline& deadline) {
  Agreement known = Agreement::of(fingerprint, rank_);
  uint64_t slot = kAgreementSlot | ((sequence_ & 0xffffffffffff) << 8);
  for (int distance = 1; distance < world_size_; distance *= 2, ++slot) {
    const int source = (rank_ + world_size_ - distance) % world_size_;
    outgoing_ = known;
    waiting_for_ = source;
    const int target = (rank_ + distance) % world_size_;
    incoming_buffer_->recv(source, slot);
    outgoing_buffer_->send(target, slot);
    const bool received = incoming_buffer_->waitRecv(deadline.remaining());
    waiting_for_ = target;  // Gloo sends when the other side is ready to receive.
    const bool sent = outgoing_buffer_->waitSend(deadline.remaining());
    if (!received || !sent) throw Failure(DDP_ABORTED, "the exchange between ranks was aborted");
    known = merge(known, incoming_);
  }
  waiting_for_ = -1;
  if (!known.agreed()) {
    throw Failure(
        DDP_MISMATCH,
        sdk::describe_mismatch(known.lowest_rank, known.lowest, known.odd_rank, known.odd),
        known.odd_rank);
  }
}

void GlooGroup::refuse_if_broken() const {
  if (aborted_) throw Failure(DDP_ABORTED, "this group was aborted");
  if (broken_) throw *broken_;
}

Failure GlooGroup::break_mesh(const std::string& during, const Deadline& deadline,
                              const char* gloo_text) {
  const std::string text = gloo_text;
  // Gloo throws one type for both; only the text tells.
  const bool timed_out =
      text.find("Timed out") != std::string::npos || text.find("imeout") != std::string::npos;
  if (aborted_) {
    drop_mesh();
    broken_.emplace(DDP_ABORTED, "this group was aborted during " + during);
  } else if (timed_out) {
    std::string message = during + " did not end within " + in_seconds(deadline.timeout());
    if (waiting_for_ >= 0) {
      message += ": no answer from rank " + std::to_string(waiting_for_) +
                 ", which is stuck, gone or itself waiting for another";
    }
    const std::string told = "rank " + std::to_string(rank_) + " gave up: " + message;
    try {
      store_set(*store_, kGaveUpKey, told.data(), told.size());
    } catch (const Failure&) {
      // The others then call it a loss; nothing else depends on this key.
    }
    drop_mesh();
    broken_.emplace(DDP_TIMEOUT, message, waiting_for_);
  } else {
    drop_mesh();
    try {
      const std::vector<char> told = store_get(*store_, kGaveUpKey, kGaveUpWait);
      broken_.emplace(DDP_TIMEOUT,
                      during + " failed because " + std::string(told.begin(), told.end()));
    } catch (const Failure&) {
      broken_.emplace(DDP_PEER_LOST, "lost " + lost_rank_text(text) + " during " + during +
                                         "; what Gloo saw: " + text);
    }
  }
  return *broken_;
}

void GlooGroup::drop_mesh() {
  outgoing_buffer_.reset();
  incoming_buffer_.reset();
  if (context_) {
    try {
      context_->closeConnections();
    } catch (const std::exception&) {
      // Some pairs were never made; the sockets go with the context.
    }
  }
  sockets_.cut();
  sockets_.release();
  context_.reset();
}

Deadline GlooGroup::deadline_of(const ddp_call_v1& call) const {
  return Deadline(effective_timeout(call.timeout_ms, timeout_ms_));
}

// A neighbour that hung up may itself have lost another: this names whose socket closed, not who
// died.
std::string GlooGroup::lost_rank_text(const std::string& gloo_text) const {
  for (size_t peer = 0; peer < peer_texts_.size(); ++peer) {
    const std::string& name = peer_texts_[peer];
    const size_t at = name.empty() ? std::string::npos : gloo_text.find(name);
    if (at == std::string::npos) continue;
    const char after = at + name.size() < gloo_text.size() ? gloo_text[at + name.size()] : ' ';
    if (after < '0' || after > '9') return "the connection to rank " + std::to_string(peer);
  }
  return "the connection to another rank";
}

}  // namespace ddp::backends
