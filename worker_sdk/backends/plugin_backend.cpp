#include "worker_sdk/backends/plugin_backend.h"

#include <cstdio>
#include <exception>
#include <system_error>
#include <utility>

#include <ddp/error.hpp>

namespace ddp::sdk {
namespace {

ddp_status report(ddp_error_v1* error, ddp_status status, const char* message, int rank = -1) {
  if (error != nullptr) {
    error->rank = rank;
    std::snprintf(error->message, sizeof error->message, "%s", message);
  }
  return status;
}

// No exception may cross the seam.
template <typename Body>
ddp_status fenced(ddp_error_v1* error, Body&& body) noexcept {
  try {
    body();
    return DDP_OK;
  } catch (const Timeout& failure) {
    return report(error, DDP_TIMEOUT, failure.what());
  } catch (const PeerLost& failure) {
    return report(error, DDP_PEER_LOST, failure.what(), failure.rank());
  } catch (const InvalidUse& failure) {
    return report(error, DDP_INVALID_USE, failure.what());
  } catch (const std::exception& failure) {
    return report(error, DDP_UNAVAILABLE, failure.what());
  } catch (...) {
    return report(error, DDP_UNAVAILABLE, "the store failed");
  }
}

ddp_error_v1 empty_error() {
  ddp_error_v1 error{};
  error.size = sizeof error;
  error.rank = -1;
  return error;
}

}  // namespace

PluginBackend::PluginBackend(const ddp_backend_v1& table, PluginOptions options)
    : table_(table), options_(std::move(options)) {
  store_.size = sizeof store_;
  store_.self = this;
  store_.set = &PluginBackend::set;
  store_.get = &PluginBackend::get;
  ddp_group_options_v1 given{};
  given.size = sizeof given;
  given.rank = options_.rank;
  given.world_size = options_.world_size;
  given.local_rank = options_.local_rank;
  given.local_world_size = options_.local_world_size;
  given.device = options_.device;
  given.timeout_ms = options_.timeout.count();
  given.local_address = options_.local_address.empty() ? nullptr : options_.local_address.c_str();
  given.store = &store_;
  ddp_error_v1 error = empty_error();
  const ddp_status status = table_.create(&given, &group_, &error);
  check(status, error, "the group of " + std::to_string(options_.world_size) + " ranks");
  start_watch();
}

PluginBackend::~PluginBackend() {
  if (guard_.forked()) {
    static_cast<void>(watch_.release());  // its thread is the parent's
    return;
  }
  watch_.reset();  // it must not abort what is being destroyed
  table_.destroy(group_);
}

void PluginBackend::start_watch() {
  if (!options_.somebody_died) return;
  try {
    watch_ = std::make_unique<DeathWatch>(options_.somebody_died, [this] { table_.abort(group_); });
  } catch (const std::system_error& error) {
    table_.destroy(group_);
    throw Unavailable(name() + ": cannot start a thread: " + error.what());
  }
}

void PluginBackend::run(const Call& call, std::chrono::milliseconds timeout) {
  ddp_call_v1 given{};
  given.size = sizeof given;
  given.dtype = static_cast<ddp_dtype>(call.type);
  given.op = static_cast<ddp_reduce_op>(call.op);
  given.root = call.root;
  given.input = call.data;
  given.output = call.data;
  given.count = call.count;
  given.premul = 1.0;
  given.timeout_ms = timeout.count();
  ddp_error_v1 error = empty_error();
  ddp_status status = DDP_INVALID_USE;
  switch (call.kind) {
    case CallKind::all_reduce:
      status = table_.all_reduce(group_, &given, &error);
      break;
    case CallKind::broadcast:
      status = table_.broadcast(group_, &given, &error);
      break;
    case CallKind::barrier:
      status = table_.barrier(group_, &given, &error);
      break;
  }
  if (status == DDP_OK) return;
  check(status, error,
        describe(fingerprint_of(call)) + " on rank " + std::to_string(options_.rank));
}

void PluginBackend::check(ddp_status status, const ddp_error_v1& error,
                          const std::string& what) const {
  if (status == DDP_OK) return;
  const std::string message = name() + ": " + what + " failed: " + error.message;
  const bool somebody_may_be_dead =
      status == DDP_PEER_LOST || status == DDP_TIMEOUT || status == DDP_ABORTED;
  if (somebody_may_be_dead && options_.find_death) {
    if (const auto death = options_.find_death()) {
      throw PeerLost(death->rank, death->host, describe(*death) + "; " + message);
    }
  }
  switch (status) {
    case DDP_TIMEOUT:
      throw Timeout(message);
    case DDP_PEER_LOST:
    case DDP_ABORTED:
      throw PeerLost(error.rank, {}, message);
    case DDP_MISMATCH:
      throw Mismatch(message);
    case DDP_INVALID_USE:
      throw InvalidUse(message);
    default:
      throw Unavailable(message);
  }
}

ddp_status PluginBackend::set(void* self, const char* key, const void* value, std::size_t length,
                              ddp_error_v1* error) noexcept {
  return fenced(error, [&] {
    const auto& backend = *static_cast<PluginBackend*>(self);
    backend.options_.store->set(backend.options_.key_prefix + key,
                                std::string_view(static_cast<const char*>(value), length));
  });
}

ddp_status PluginBackend::get(void* self, const char* key, std::int64_t timeout_ms,
                              void (*sink)(void* context, const void* data, std::size_t length),
                              void* context, ddp_error_v1* error) noexcept {
  return fenced(error, [&] {
    const auto& backend = *static_cast<PluginBackend*>(self);
    const std::string value =
        backend.options_.store->get(backend.options_.key_prefix + key, Milliseconds(timeout_ms));
    sink(context, value.data(), value.size());
  });
}

}  // namespace ddp::sdk
