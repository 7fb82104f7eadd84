#include "worker_sdk/backends/gloo/ordered_all_reduce.h"

#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <array>
#include <vector>

namespace ddp::backends {
namespace {

using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

// Scratch memory is twice this, however large the buffer is: one piece travels while one is
// reduced.
constexpr size_t kPieceBytes = size_t{4} << 20;
// Gloo's own collectives use prefixes below 0x10, the agreement 0x7d.
constexpr uint64_t kSlotPrefix = uint64_t{0x7c} << 56;

struct Range {
  size_t offset = 0;
  size_t bytes = 0;
};

class Run {
 public:
  Run(const std::shared_ptr<gloo::Context>& context, const OrderedReduction& reduction,
      const Deadline& deadline)
      : context_(*context),
        reduction_(reduction),
        deadline_(deadline),
        element_(reduction.element_size),
        ranks_(static_cast<size_t>(context->size)),
        rank_(static_cast<size_t>(context->rank)) {
    const size_t piece_elements = std::max(ranks_, kPieceBytes / element_);
    pieces_ = (reduction_.count + piece_elements - 1) / piece_elements;
    piece_elements_ = std::min(piece_elements, reduction_.count);
    const size_t bytes = reduction_.count * element_;
    // Gloo's interface is not const-correct; it only reads what it sends.
    input_ = context_.createUnboundBuffer(const_cast<void*>(reduction_.input), bytes);
    result_ = context_.createUnboundBuffer(reduction_.output, bytes);
    const size_t scratch = ranks_ * chunk_elements(piece_elements_) * element_;
    for (Lane& lane : lanes_) {
      lane.memory.resize(scratch);
      lane.parts = context_.createUnboundBuffer(lane.memory.data(), scratch);
    }
  }

  void run() {
    start(0);
    for (size_t piece = 0; piece < pieces_; ++piece) {
      if (piece + 1 < pieces_) start(piece + 1);
      reduce(piece);
      share(piece);
    }
    for (; received_ > 0; --received_) require(result_->waitRecv(deadline_.remaining()));
    for (; sent_parts_ > 0; --sent_parts_) require(input_->waitSend(deadline_.remaining()));
    for (; sent_results_ > 0; --sent_results_) require(result_->waitSend(deadline_.remaining()));
  }

 private:
  struct Lane {
    std::vector<char> memory;
    Buffer parts;
  };

  [[nodiscard]] size_t chunk_elements(size_t piece) const { return (piece + ranks_ - 1) / ranks_; }

  // The chunk of `piece` that rank `owner` reduces; empty for the last ranks if there are few
  // elements.
  [[nodiscard]] Range chunk(size_t piece, size_t owner) const {
    const size_t begin = piece * piece_elements_;
    const size_t size = std::min(piece_elements_, reduction_.count - begin);
    const size_t chunk = chunk_elements(size);
    const size_t first = std::min(size, owner * chunk);
    const size_t last = std::min(size, first + chunk);
    return Range{(begin + first) * element_, (last - first) * element_};
  }

  [[nodiscard]] uint64_t slot(size_t piece, uint64_t phase) const {
    return kSlotPrefix | ((reduction_.sequence & 0xffffffff) << 24) |
           ((uint64_t{piece} & 0x7fffff) << 1) | phase;
  }

  template <class F>
  void for_each_peer(F&& f) const {
    // Each rank begins with the one above it, so that not all send to rank 0 first.
    for (size_t step = 1; step < ranks_; ++step) f((rank_ + step) % ranks_);
  }

  void start(size_t piece) {
    const Range own = chunk(piece, rank_);
    Lane& lane = lanes_[piece % 2];
    for_each_peer([&](size_t peer) {
      if (own.bytes > 0) {
        lane.parts->recv(static_cast<int>(peer), slot(piece, 0), peer * own.bytes, own.bytes);
      }
      const Range theirs = chunk(piece, peer);
      if (theirs.bytes == 0) return;
      input_->send(static_cast<int>(peer), slot(piece, 0), theirs.offset, theirs.bytes);
      ++sent_parts_;
    });
  }

  void reduce(size_t piece) {
    const Range own = chunk(piece, rank_);
    if (own.bytes == 0) return;
    Lane& lane = lanes_[piece % 2];
    for (size_t peers = 1; peers < ranks_; ++peers) {
      require(lane.parts->waitRecv(deadline_.remaining()));
    }
    std::vector<const void*> inputs;
    for (size_t rank = 0; rank < ranks_; ++rank) {
      inputs.push_back(lane.memory.data() + rank * own.bytes);
    }
    inputs[rank_] = static_cast<const char*>(reduction_.input) + own.offset;
    void* output = static_cast<char*>(reduction_.output) + own.offset;
    reduction_.reduce({inputs.data(), ranks_, own.bytes / element_, output});
  }

  void share(size_t piece) {
    const Range own = chunk(piece, rank_);
    for_each_peer([&](size_t peer) {
      const Range theirs = chunk(piece, peer);
      if (theirs.bytes > 0) {
        result_->recv(static_cast<int>(peer), slot(piece, 1), theirs.offset, theirs.bytes);
        ++received_;
      }
      if (own.bytes == 0) return;
      result_->send(static_cast<int>(peer), slot(piece, 1), own.offset, own.bytes);
      ++sent_results_;
    });
  }

  static void require(bool completed) {
    if (!completed) throw Failure(DDP_ABORTED, "all_reduce was aborted");
  }

  gloo::Context& context_;
  const OrderedReduction& reduction_;
  const Deadline& deadline_;
  const size_t element_;
  const size_t ranks_;
  const size_t rank_;
  size_t pieces_ = 0;
  size_t piece_elements_ = 0;
  size_t received_ = 0;
  size_t sent_parts_ = 0;
  size_t sent_results_ = 0;
  std::array<Lane, 2> lanes_;
  Buffer input_;
  Buffer result_;
};

}  // namespace

void ordered_all_reduce(const std::shared_ptr<gloo::Context>& context,
                        const OrderedReduction& reduction, const Deadline& deadline) {
  Run(context, reduction, deadline).run();
}

}  // namespace ddp::backends
