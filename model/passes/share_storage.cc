#include <algorithm>
#include <array>
#include <optional>

#include "model/passes/passes.h"
#include "model/program/op_rules.h"
#include "model/program/storage.h"

namespace troupe::model {
namespace {

// The orders in which a chunk's operations run: F, B and F, I, W.
constexpr int kOrders = 2;
using Position = std::array<int, kOrders>;

class ChunkStorage {
 public:
  ChunkStorage(Program& program, int chunk_index) : program_(program), chunk_index_(chunk_index) {}

  void Share() {
    PlaceOps();
    for (size_t i = 0; i < ops_.size(); ++i) {
      const int input = RulesOf(ops_[i]->kind).in_place_input;
      if (input >= 0) TryShare(*ops_[i], position_[i], ops_[i]->inputs[input], ops_[i]->outputs[0]);
      const std::optional<CollectiveRules>& collective = RulesOf(ops_[i]->kind).collective;
      const bool scatters =
          collective.has_value() && collective->pattern == CollectivePattern::kReduceScatter;
      if (scatters && !ops_[i]->consumes_input) {
        ops_[i]->consumes_input = IsDeadAfter(*ops_[i], position_[i]);
      }
    }
  }

 private:
  // Computes the positions of all operations and of the last reads of each storage root.
  void PlaceOps() {
    last_read_.assign(program_.values.size(), Position{-1, -1});
    int next = 0;
    const auto place = [&](const Op& op, int order, int at) {
      for (const ValueId input : op.inputs) {
        int& last = last_read_[StorageRoot(program_, input)][order];
        last = std::max(last, at);
      }
    };
    auto& pieces = program_.ops[chunk_index_];
    for (Op& op : pieces[static_cast<int>(Piece::kForward)]) {
      ops_.push_back(&op);
      position_.push_back({next, next});
      place(op, 0, next);
      place(op, 1, next++);
    }
    std::vector<Op>& backward = pieces[static_cast<int>(Piece::kBackward)];
    const int inputs_first =
        static_cast<int>(std::count_if(backward.begin(), backward.end(), [](const Op& op) {
          return op.part != Part::kWeightGradient;
        }));
    int input_gradient = next, weight_gradient = next + inputs_first;
    for (Op& op : backward) {
      const int split = op.part == Part::kWeightGradient ? weight_gradient++ : input_gradient++;
      ops_.push_back(&op);
      position_.push_back({next, split});
      place(op, 0, next++);
      place(op, 1, split);
    }
  }

  void TryShare(const Op& op, const Position& at, ValueId x, ValueId y) {
    Value& output = program_.values[y];
    const ValueId root = StorageRoot(program_, x);
    if (output.view_of != kNoValue || output.bytes() != program_.value(x).bytes()) return;
    const ChunkInterface& chunk = program_.chunks[chunk_index_];
    if (y == chunk.output || y == chunk.input_gradient) return;
    if (op.kind == OpKind::kAllToAll && GroupSize(program_.mesh, CollectiveOf(op).group) > 1) {
      return;
    }
    if (op.kind != OpKind::kCopy) {
      if (program_.value(root).role != Role::kActivation || root == chunk.output) return;
      for (int order = 0; order < kOrders; ++order) {
        if (last_read_[root][order] > at[order]) return;
      }
      for (const ValueId other : op.inputs) {
        if (other != x && StorageRoot(program_, other) == root) return;
      }
    }
    output.view_of = x;
    for (int order = 0; order < kOrders; ++order) {
      last_read_[root][order] = std::max(last_read_[root][order], last_read_[y][order]);
    }
  }

  // True if no operation reads the storage of the first input after `op`.
  bool IsDeadAfter(const Op& op, const Position& at) const {
    const ValueId root = StorageRoot(program_, op.inputs[0]);
    const Role role = program_.value(root).role;
    if (root == program_.chunks[chunk_index_].output) return false;
    if (role != Role::kActivation && role != Role::kMicrobatchGradient) return false;
    return last_read_[root][0] <= at[0] && last_read_[root][1] <= at[1];
  }

  Program& program_;
  const int chunk_index_;
  std::vector<Op*> ops_;  // F, then B
  std::vector<Position> position_;
  std::vector<Position> last_read_;  // by storage root
};

}  // namespace

void ShareStorage(Program& program) {
  for (int c = 0; c < static_cast<int>(program.chunks.size()); ++c)
    ChunkStorage(program, c).Share();
}

}  // namespace troupe::model
