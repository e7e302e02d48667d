#include <algorithm>
#include <cstddef>
#include <list>
#include <map>
#include <utility>

#include "model/ops/rules.h"
#include "model/passes/insertions.h"
#include "model/passes/passes.h"
#include "model/program/storage.h"

namespace troupe::model {
namespace {

// A group carries a bounded number of operations at a time (collective/engine.cc).
constexpr size_t kMostUnderWay = 256;

class ChunkEnds {
 public:
  ChunkEnds(Program& program, int chunk_index) : program_(program), chunk_index_(chunk_index) {}

  // Unshard begins to gather, in the order of first use; F waits right before it.
  void OverlapUnshard() {
    std::vector<Op>& forward = OpsOf(Piece::kForward);
    Insertions insertions;
    std::vector<Op> unshard;
    size_t begun = 0;
    std::map<ValueId, size_t> first_reads;  // of what is gathered
    for (Op& op : OpsOf(Piece::kUnshard)) {
      const auto of_gathered = op.inputs.empty() ? first_reads.end() : first_reads.find(op.inputs[0]);
      if (op.kind == OpKind::kCopy && of_gathered != first_reads.end()) {
        insertions.emplace(of_gathered->second, std::move(op));
        continue;
      }
      const auto reader = std::find_if(forward.begin(), forward.end(), [&](const Op& other) {
        return Touches(other, op.outputs);
      });
      if (op.kind == OpKind::kAllGather && Communicates(op) && reader != forward.end() &&
          begun < kMostUnderWay) {
        ++begun;
        op.asynchronous = true;
        const size_t index = static_cast<size_t>(reader - forward.begin());
        first_reads[op.outputs[0]] = index;
        insertions.emplace(index, WaitOf(op));
      }
      unshard.push_back(std::move(op));
    }
    OpsOf(Piece::kUnshard) = std::move(unshard);
    Insert(forward, std::move(insertions));
  }

  // The sum of gradients that this chunk alone makes begins in B, once the last microbatch has added
  // to them; another one, and what works on sums, in Reduce. Whatever reads a sum waits for it, and
  // the end of Reduce for all.
  void OverlapReduce() {
    Insertions insertions;
    std::vector<Op> reduce;
    std::list<Op> waits;
    size_t begun = 0;
    for (Op& op : OpsOf(Piece::kReduce)) {
      bool reads_sum = false;
      for (auto wait = waits.begin(); wait != waits.end();) {
        if (!Touches(op, wait->inputs)) {
          ++wait;
          continue;
        }
        reads_sum = true;
        reduce.push_back(std::move(*wait));
        wait = waits.erase(wait);
      }
      reads_sum |= std::any_of(reduce.begin(), reduce.end(), [&](const Op& before) {
        return Touches(op, before.inputs) || Touches(op, before.outputs);
      });
      if (!CanBegin(op) || begun + op.inputs.size() > kMostUnderWay) {
        reduce.push_back(std::move(op));
        continue;
      }
      begun += op.inputs.size();
      op.asynchronous = true;
      const int end = reads_sum ? -1 : EndOfWriters(op);
      if (end >= 0) {
        op.last_microbatch = true;
        op.part = Part::kWeightGradient;
      }
      waits.push_back(WaitOf(op));
      if (end >= 0) {
        insertions.emplace(static_cast<size_t>(end), std::move(op));
      } else {
        reduce.push_back(std::move(op));
      }
    }
    reduce.insert(reduce.end(), std::make_move_iterator(waits.begin()),
                  std::make_move_iterator(waits.end()));
    // What is waited for at once is not begun apart.
    for (size_t i = 0; i + 1 < reduce.size(); ++i) {
      if (!reduce[i].asynchronous || reduce[i + 1].kind != OpKind::kWait ||
          reduce[i + 1].inputs[0] != reduce[i].outputs[0]) {
        continue;
      }
      reduce[i].asynchronous = false;
      reduce.erase(reduce.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    OpsOf(Piece::kReduce) = std::move(reduce);
    Insert(OpsOf(Piece::kBackward), std::move(insertions));
  }

 private:
  std::vector<Op>& OpsOf(Piece piece) {
    return program_.ops[chunk_index_][static_cast<int>(piece)];
  }

  ValueId Root(ValueId id) const { return StorageRoot(program_, id); }

  // True if `op` reads or writes the storage of one of `values`.
  bool Touches(const Op& op, const std::vector<ValueId>& values) const {
    const auto shares = [&](ValueId id) {
      return std::any_of(values.begin(), values.end(),
                         [&](ValueId value) { return Root(value) == Root(id); });
    };
    return std::any_of(op.inputs.begin(), op.inputs.end(), shares) ||
           std::any_of(op.outputs.begin(), op.outputs.end(), shares);
  }

  bool Communicates(const Op& op) const {
    return GroupSize(program_.mesh, std::get<CollectiveAttributes>(op.attributes).group) > 1;
  }

  bool CanBegin(const Op& op) const {
    return (op.kind == OpKind::kAllReduce || op.kind == OpKind::kReduceScatter) &&
           Communicates(op);
  }

  // The index in B behind all that writes what `op` reduces; -1 where other chunks write it too, in
  // an order that the schedule decides.
  int EndOfWriters(const Op& op) const {
    int end = 0;
    for (int c = 0; c < static_cast<int>(program_.chunks.size()); ++c) {
      for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
        const std::vector<Op>& ops = program_.Ops(c, piece);
        for (size_t i = 0; i < ops.size(); ++i) {
          if (!Touches(ops[i], op.inputs)) continue;
          if (c != chunk_index_) return -1;
          if (piece == Piece::kBackward) end = static_cast<int>(i) + 1;
        }
      }
    }
    return end;
  }

  static Op WaitOf(const Op& op) {
    Op wait = {.kind = OpKind::kWait, .attributes = NoAttributes(), .inputs = op.outputs};
    wait.inputs.insert(wait.inputs.end(), op.inputs.begin(), op.inputs.end());
    wait.part = op.part;
    return wait;
  }

  Program& program_;
  const int chunk_index_;
};

}  // namespace

void OverlapEnds(Program& program) {
  for (int c = 0; c < static_cast<int>(program.chunks.size()); ++c) {
    ChunkEnds ends(program, c);
    ends.OverlapUnshard();
    ends.OverlapReduce();
  }
}

}  // namespace troupe::model
