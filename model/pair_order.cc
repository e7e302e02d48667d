#include "model/pair_order.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <set>

#include "model/program/op_rules.h"
#include "model/program/storage.h"

namespace troupe::model {
namespace {

// One side of a pair: the operations of its pieces in sequence, and the position of the next one.
class Side {
 public:
  Side(const Program& program, int chunk_index, const std::vector<Piece>& pieces, int first_piece) {
    for (const Piece piece : pieces) {
      const std::vector<Op>& ops = program.Ops(chunk_index, piece);
      const int number = first_piece++;
      for (int i = 0; i < static_cast<int>(ops.size()); ++i) Add({number, i, i + 1}, ops[i]);
    }
  }

  bool is_over() const { return next_ == ops_.size(); }
  size_t next() const { return next_; }
  size_t size() const { return ops_.size(); }
  const Op& op(size_t index) const { return *ops_[index]; }
  int waits_left() const { return waits_left_; }
  int work_left() const { return work_left_; }
  bool next_waits() const { return waits_[next_]; }
  bool next_computes() const { return Computes(*ops_[next_]); }

  // Appends the next operation to `order`.
  void Advance(std::vector<PieceRun>* order) {
    waits_left_ -= next_waits() ? 1 : 0;
    work_left_ -= next_computes() ? 1 : 0;
    const PieceRun& run = runs_[next_++];
    if (!order->empty() && order->back().piece == run.piece && order->back().end == run.begin) {
      order->back().end = run.end;
    } else {
      order->push_back(run);
    }
  }

 private:
  void Add(const PieceRun& run, const Op& op) {
    // Reduce waits for collectives that the last microbatch begins, and Unshard has begun those
    // that F only waits for.
    if (op.asynchronous && !op.last_microbatch) begun_.insert(op.outputs[0]);
    const bool waits = op.kind == OpKind::kWait && begun_.contains(op.inputs[0]);
    ops_.push_back(&op);
    runs_.push_back(run);
    waits_.push_back(waits);
    waits_left_ += waits ? 1 : 0;
    work_left_ += Computes(op) ? 1 : 0;
  }

  std::vector<const Op*> ops_;
  std::vector<PieceRun> runs_;  // one operation each
  std::vector<bool> waits_;     // the operation waits for a collective of this side
  std::set<ValueId> begun_;
  size_t next_ = 0;
  int waits_left_ = 0, work_left_ = 0;
};

// Calls `body(root, writes)` for each persistent storage root that `op` accesses.
template <typename Body>
void ForEachPersistent(const Program& program, const std::vector<ValueId>& roots, const Op& op,
                       const Body& body) {
  const auto visit = [&](ValueId id, bool writes) {
    if (id == kNoValue) return;
    const ValueId root = roots[static_cast<size_t>(id)];
    if (IsPersistent(program.value(root))) body(root, writes);
  };
  // A wait completes a write.
  const bool all_written = op.outputs.empty() || op.kind == OpKind::kWait;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    visit(op.inputs[i], all_written || (i == 0 && op.consumes_input));
  }
  for (const ValueId id : op.outputs) visit(id, true);
}

// For each operation of `backward`, the number of operations of `forward` that must precede it
// because both access persistent storage that one of them writes.
std::vector<size_t> ForwardNeeded(const Program& program, const Side& forward,
                                  const Side& backward) {
  const std::vector<ValueId> roots = StorageRoots(program);
  std::map<ValueId, size_t> touched,
      written;  // by root: one more than the index of the last operation of F that did so
  for (size_t i = 0; i < forward.size(); ++i) {
    ForEachPersistent(program, roots, forward.op(i), [&](ValueId root, bool writes) {
      touched[root] = i + 1;
      if (writes) written[root] = i + 1;
    });
  }
  std::vector<size_t> needed(backward.size());
  for (size_t i = 0; i < backward.size(); ++i) {
    ForEachPersistent(program, roots, backward.op(i), [&](ValueId root, bool writes) {
      const std::map<ValueId, size_t>& conflicts = writes ? touched : written;
      const auto found = conflicts.find(root);
      if (found != conflicts.end()) needed[i] = std::max(needed[i], found->second);
    });
  }
  return needed;
}

// The number of operations that `side` computes in one turn while `other` has collectives in flight
// or to come.
int ShareOf(const Side& side, const Side& other) {
  if (other.waits_left() == 0) return std::numeric_limits<int>::max();
  const int turns = other.waits_left() + 1;
  return std::max(1, (side.work_left() + turns - 1) / turns);
}

// Runs one turn of `side`: from its current position to its next wait or the end of its share.
// `may_run(index)` returns whether the operation at that index may run yet.
template <typename MayRun>
void TakeTurn(Side* side, const Side& other, const MayRun& may_run, std::vector<PieceRun>* order) {
  const int share = ShareOf(*side, other);
  int work = 0;
  for (bool first = true; !side->is_over(); first = false) {
    if (!may_run(side->next())) return;
    const bool pauses = side->next_waits() || (side->next_computes() && work >= share);
    if (!first && pauses && !other.is_over()) return;
    work += side->next_computes() ? 1 : 0;
    side->Advance(order);
  }
}

}  // namespace

std::vector<PieceRun> InterleavePair(const Program& program, int forward_chunk_index,
                                     int backward_chunk_index,
                                     const std::vector<Piece>& backward_pieces) {
  std::vector<PieceRun> order;
  const auto size_of = [&](Piece piece) {
    return static_cast<int>(program.Ops(backward_chunk_index, piece).size());
  };
  Side forward(program, forward_chunk_index, {Piece::kForward}, 0);
  Side backward(program, backward_chunk_index, backward_pieces, 1);
  if (forward.size() == 0 || std::ranges::count(backward_pieces, 0, size_of) > 0) {
    order.push_back({0, 0, static_cast<int>(forward.size())});
    int number = 0;
    for (const Piece piece : backward_pieces) order.push_back({++number, 0, size_of(piece)});
    return order;
  }
  const std::vector<size_t> needed = ForwardNeeded(program, forward, backward);
  while (!forward.is_over() || !backward.is_over()) {
    TakeTurn(
        &forward, backward, [](size_t) { return true; }, &order);
    TakeTurn(
        &backward, forward, [&](size_t index) { return needed[index] <= forward.next(); }, &order);
  }
  return order;
}

}  // namespace troupe::model
