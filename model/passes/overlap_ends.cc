#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "model/passes/insertions.h"
#include "model/passes/passes.h"
#include "model/program/op_rules.h"
#include "model/program/storage.h"

namespace troupe::model {
namespace {

// A group supports a bounded number of pending operations (collective/engine.cc).
constexpr size_t kMostInFlight = 256;

// The chunk whose F and B use a storage, and the end of the uses in that B.
struct Use {
  int chunk = -1;
  bool by_several = false;
  int end_in_backward = 0;
};

// The uses of each storage root by the pieces of the program before this pass.
struct Storage {
  explicit Storage(const Program& program)
      : roots(StorageRoots(program)), uses(program.values.size()) {
    for (int chunk = 0; chunk < static_cast<int>(program.chunks.size()); ++chunk) {
      for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
        const std::vector<Op>& ops = program.Ops(chunk, piece);
        for (size_t i = 0; i < ops.size(); ++i) {
          ForEachRoot(ops[i], [&](size_t root) {
            Use& use = uses[root];
            use.by_several |= use.chunk >= 0 && use.chunk != chunk;
            use.chunk = chunk;
            if (piece == Piece::kBackward) use.end_in_backward = static_cast<int>(i) + 1;
          });
        }
      }
    }
  }

  // Visits the roots of all values that `op` reads or writes.
  template <typename Visit>
  void ForEachRoot(const Op& op, const Visit& visit) const {
    for (const auto* ids : {&op.inputs, &op.outputs}) {
      for (const ValueId id : *ids) {
        if (id != kNoValue) visit(static_cast<size_t>(roots[static_cast<size_t>(id)]));
      }
    }
  }

  std::vector<ValueId> roots;
  std::vector<Use> uses;
};

class ChunkEnds {
 public:
  ChunkEnds(Program& program, const Storage& storage, int chunk_index)
      : program_(program), storage_(storage), chunk_index_(chunk_index) {}

  // Unshard begins the gathers in the order of first use; F waits just before that use. Gathers
  // that Unshard quantises or converts are waited for at its end, one after another, so that one is
  // processed while the next is in flight.
  void OverlapUnshard() {
    std::vector<Op>& forward = OpsOf(Piece::kForward);
    std::vector<size_t> first_touch(storage_.roots.size(), forward.size());  // by root
    for (size_t i = forward.size(); i-- > 0;) {
      storage_.ForEachRoot(forward[i], [&](size_t root) { first_touch[root] = i; });
    }
    Insertions insertions;
    std::vector<Op> unshard;
    size_t begun = 0;
    std::map<ValueId, size_t> first_reads;  // by gathered value: the index in F of its first reader
    const std::set<ValueId> worked_on = GatheredForWork();
    std::map<ValueId, std::vector<Op>> before_work;  // by the value that it reads
    std::vector<Op> at_end;
    for (Op& op : OpsOf(Piece::kUnshard)) {
      if (op.kind == OpKind::kAllGather && worked_on.contains(op.outputs[0]) && Communicates(op) &&
          begun < kMostInFlight) {
        ++begun;
        op.asynchronous = true;
        before_work[op.outputs[0]] = {WaitOf(op)};
      } else if (const auto of = before_work.find(op.inputs[0]); of != before_work.end()) {
        std::vector<Op> ops = std::move(of->second);
        before_work.erase(of);
        ops.push_back(std::move(op));
        if (ops.back().kind == OpKind::kCopy || ops.back().kind == OpKind::kCast) {
          const ValueId made = ops.back().outputs[0];
          before_work[made] = std::move(ops);
        } else {
          at_end.insert(at_end.end(), std::make_move_iterator(ops.begin()),
                        std::make_move_iterator(ops.end()));
        }
        continue;
      }
      const auto of_gathered =
          op.inputs.empty() ? first_reads.end() : first_reads.find(op.inputs[0]);
      if (op.kind == OpKind::kCopy && of_gathered != first_reads.end()) {
        first_reads[op.outputs[0]] = of_gathered->second;  // a copy of the copy
        insertions.emplace(of_gathered->second, std::move(op));
        continue;
      }
      size_t index = forward.size();
      for (const ValueId output : op.outputs) index = std::min(index, first_touch[Root(output)]);
      if (op.kind == OpKind::kAllGather && !op.asynchronous && Communicates(op) &&
          index < forward.size() && begun < kMostInFlight) {
        ++begun;
        op.asynchronous = true;
        first_reads[op.outputs[0]] = index;
        insertions.emplace(index, WaitOf(op));
      }
      unshard.push_back(std::move(op));
    }
    for (auto& [made, ops] : before_work)
      std::move(ops.begin(), ops.end(), std::back_inserter(at_end));
    unshard.insert(unshard.end(), std::make_move_iterator(at_end.begin()),
                   std::make_move_iterator(at_end.end()));
    OpsOf(Piece::kUnshard) = std::move(unshard);
    Insert(forward, std::move(insertions));
  }

  // The reduction of gradients that only this chunk computes begins in B, once the last microbatch
  // has accumulated them. Other reductions, and reductions of sums, begin in Reduce. Every reader
  // of a sum waits for it, and the end of Reduce waits for all.
  void OverlapReduce() {
    Insertions insertions;
    std::vector<Op> reduce;
    // Accessed by operations in `reduce`, by root.
    std::vector<bool> worked_on(storage_.roots.size());
    std::map<size_t, Op> waits;         // in the order of their begins
    std::map<size_t, size_t> wait_for;  // by root of values in flight
    size_t begun = 0, next_wait = 0;
    const auto put = [&](Op op) {
      storage_.ForEachRoot(op, [&](size_t root) { worked_on[root] = true; });
      reduce.push_back(std::move(op));
    };
    for (Op& op : OpsOf(Piece::kReduce)) {
      bool reads_sum = false;
      std::set<size_t> due;
      storage_.ForEachRoot(op, [&](size_t root) {
        const auto wait = wait_for.find(root);
        if (wait != wait_for.end()) due.insert(wait->second);
        reads_sum |= worked_on[root];
      });
      for (const size_t number : due) {
        reads_sum = true;
        const auto wait = waits.find(number);
        storage_.ForEachRoot(wait->second, [&](size_t root) { wait_for.erase(root); });
        put(std::move(wait->second));
        waits.erase(wait);
      }
      if (!CanBegin(op) || begun + op.inputs.size() > kMostInFlight) {
        put(std::move(op));
        continue;
      }
      begun += op.inputs.size();
      op.asynchronous = true;
      const int end = reads_sum ? -1 : EndOfWriters(op);
      if (end >= 0) {
        op.last_microbatch = true;
        op.part = Part::kWeightGradient;
      }
      const size_t number = next_wait++;
      Op wait = WaitOf(op);
      storage_.ForEachRoot(wait, [&](size_t root) { wait_for[root] = number; });
      waits.emplace(number, std::move(wait));
      if (end >= 0) {
        insertions.emplace(static_cast<size_t>(end), std::move(op));
      } else {
        put(std::move(op));
      }
    }
    for (auto& [number, wait] : waits) reduce.push_back(std::move(wait));
    // A collective whose wait follows immediately stays synchronous.
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
  // The values that Unshard gathers and then converts or quantises, directly or through views.
  std::set<ValueId> GatheredForWork() {
    std::set<ValueId> gathered;
    for (const Op& op : OpsOf(Piece::kUnshard)) {
      if (op.kind == OpKind::kQuantize) {
        // Follow the views: the value may be a copy of a copy.
        for (ValueId of = program_.value(op.inputs[0]).view_of; of != kNoValue;
             of = program_.value(of).view_of)
          gathered.insert(of);
      }
      if (op.kind == OpKind::kCast) gathered.insert(op.inputs[0]);
    }
    return gathered;
  }

  std::vector<Op>& OpsOf(Piece piece) {
    return program_.ops[chunk_index_][static_cast<int>(piece)];
  }

  size_t Root(ValueId id) const {
    return static_cast<size_t>(storage_.roots[static_cast<size_t>(id)]);
  }

  bool Communicates(const Op& op) const {
    return GroupSize(program_.mesh, CollectiveOf(op).group) > 1;
  }

  bool CanBegin(const Op& op) const {
    return (op.kind == OpKind::kAllReduce || op.kind == OpKind::kReduceScatter) && Communicates(op);
  }

  // The index in B after all writers of the inputs of `op`; -1 if other chunks write them too, in
  // an order that depends on the schedule.
  int EndOfWriters(const Op& op) const {
    int end = 0;
    for (const ValueId input : op.inputs) {
      const Use& use = storage_.uses[Root(input)];
      if (use.by_several || (use.chunk >= 0 && use.chunk != chunk_index_)) return -1;
      end = std::max(end, use.end_in_backward);
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
  const Storage& storage_;
  const int chunk_index_;
};

}  // namespace

void OverlapEnds(Program& program) {
  const Storage storage(program);
  for (int c = 0; c < static_cast<int>(program.chunks.size()); ++c) {
    ChunkEnds ends(program, storage, c);
    ends.OverlapUnshard();
    ends.OverlapReduce();
  }
}

}  // namespace troupe::model
