#include <algorithm>
#include <iterator>
#include <list>
#include <map>
#include <memory_resource>
#include <optional>

#include "model/passes/passes.h"
#include "model/program/op_rules.h"
#include "model/program/storage.h"

namespace troupe::model {
namespace {

using Ops = std::pmr::list<Op>;
using At = Ops::iterator;

// The number of computing operations to run between the begin of a collective and its wait, if its
// input is available that early.
constexpr int kWorkAhead = 2;

bool IsUnshard(const Op& op) {
  return op.kind == OpKind::kAllGather && CollectiveOf(op).purpose == CollectivePurpose::kUnshard;
}

bool IsGradientScatter(const Program& program, const Op& op) {
  return op.kind == OpKind::kReduceScatter &&
         program.value(op.inputs[0]).role == Role::kMicrobatchGradient;
}

// Moves the begin of collectives in one list of operations earlier and their waits later.
class ListOverlap {
 public:
  // `layers`: for each gathered block of parameters, the layer that reads it first in F.
  ListOverlap(const Program& program, const std::vector<StorageRange>& ranges, std::vector<Op>& ops,
              const std::map<ValueId, int>& layers)
      : program_(program), ranges_(ranges), layers_(layers), source_(ops) {}

  void Run() {
    const auto sends = [this](const Op& op) {
      return RulesOf(op.kind).collective.has_value() && Communicates(op);
    };
    if (std::ranges::none_of(source_, sends)) return;
    std::ranges::move(source_, std::back_inserter(ops_));
    PrefetchParameters();
    DelayGradients();
    HideOthers();
    source_.assign(std::make_move_iterator(ops_.begin()), std::make_move_iterator(ops_.end()));
  }

 private:
  // Gathers the parameters of one layer while the previous layer computes; the first reader waits
  // for each.
  void PrefetchParameters() {
    std::vector<std::pair<int, At>> gathers;  // layer, operation
    for (At at = ops_.begin(); at != ops_.end(); ++at) {
      if (!IsUnshard(*at) || !Communicates(*at)) continue;
      const auto layer = layers_.find(at->inputs[0]);
      gathers.emplace_back(layer == layers_.end() ? -1 : layer->second, at);
    }
    // The first waits of the previous group and of this one.
    At before = ops_.end(), first_wait = ops_.end();
    for (size_t g = 0; g < gathers.size(); ++g) {
      const auto [layer, gather] = gathers[g];
      const At wait = ops_.insert(std::next(gather), Begin(gather));
      if (g == 0 || layer != gathers[g - 1].first) {
        before = g == 0 ? wait : first_wait;
        first_wait = wait;
      }
      ops_.splice(before, ops_, gather);
    }
  }

  // A bucket of gradients stays in flight until the next bucket is ready or the list ends.
  void DelayGradients() {
    Ops tail(&memory_);
    for (At at = ops_.begin(); at != ops_.end();) {
      if (!IsGradientScatter(program_, *at) || !Communicates(*at) || !at->consumes_input) {
        ++at;
        continue;
      }
      ops_.splice(at, tail);
      for (; at != ops_.end() && IsGradientScatter(program_, *at);) {
        const At scatter = at++;
        tail.push_back(Begin(scatter));
        while (at != ops_.end() && at->kind == OpKind::kAccumulate) {
          tail.splice(tail.end(), ops_, at++);
        }
      }
    }
    ops_.splice(ops_.end(), tail);
  }

  // All other collectives begin once their input is available, and their first reader waits for
  // them, if there is something to compute in between, including the other side of an overlapped
  // pair. Collectives of one group keep their order: the link carries one after another.
  void HideOthers() {
    for (At at = ops_.begin(); at != ops_.end();) {
      const At collective = at++;
      if (!CanBegin(*collective)) continue;
      At first = collective, end = at;
      bool hides = program_.interleaves_pairs;
      // Do not begin earlier than necessary: an early result only occupies memory.
      for (int work = 0; first != ops_.begin() && work < kWorkAhead &&
                         !IsOfSameGroup(*collective, *std::prev(first)) &&
                         !Conflict(*collective, *std::prev(first));) {
        --first;
        work += Computes(*first);
        hides |= work > 0;
      }
      while (end != ops_.end() && !Conflict(*collective, *end)) {
        hides |= Computes(*end);
        ++end;
      }
      if (!hides) continue;
      ops_.insert(end, Begin(collective));
      ops_.splice(first, ops_, collective);
    }
  }

  bool Communicates(const Op& op) const {
    return GroupSize(program_.mesh, CollectiveOf(op).group) > 1;
  }

  bool CanBegin(const Op& op) const {
    const std::optional<CollectiveRules>& rules = RulesOf(op.kind).collective;
    if (op.asynchronous || !rules.has_value() || !rules->begins_early) return false;
    // The counts of an all_to_all are small: only another piece is worth computing meanwhile.
    const bool is_of_counts = op.kind == OpKind::kAllToAll && op.inputs.size() == 1;
    if (is_of_counts && !program_.interleaves_pairs) return false;
    // Otherwise it works on a copy in scratch memory, which all operations share.
    if (op.kind == OpKind::kReduceScatter && !UsesUp(op)) return false;
    return Communicates(op);
  }

  static bool IsOfSameGroup(const Op& collective, const Op& op) {
    const CollectiveAttributes* const other = FindCollective(op.attributes);
    return other != nullptr && op.kind != OpKind::kCopy &&
           other->group == CollectiveOf(collective).group;
  }

  // Whether the collective writes its input's storage.
  bool UsesUp(const Op& op) const {
    return op.consumes_input || RangeOf(op.inputs[0]).root == RangeOf(op.outputs[0]).root;
  }

  // True if `collective` must not be in flight while `op` runs.
  bool Conflict(const Op& collective, const Op& op) const {
    const auto touches = [&](ValueId of_collective, bool writes_only) {
      const StorageRange& range = RangeOf(of_collective);
      const auto overlaps = [&](ValueId id) { return RangeOf(id).Overlaps(range); };
      if (std::any_of(op.outputs.begin(), op.outputs.end(), overlaps)) return true;
      if (op.consumes_input && overlaps(op.inputs[0])) return true;
      // A wait completes a write.
      return (!writes_only || op.kind == OpKind::kWait) &&
             std::any_of(op.inputs.begin(), op.inputs.end(), overlaps);
    };
    for (const ValueId output : collective.outputs) {
      if (touches(output, false)) return true;
    }
    for (const ValueId input : collective.inputs) {
      if (touches(input, !UsesUp(collective))) return true;
    }
    return false;
  }

  // Makes `collective` asynchronous and returns its wait.
  Op Begin(At collective) const {
    collective->asynchronous = true;
    Op wait = {.kind = OpKind::kWait,
               .attributes = NoAttributes(),
               .inputs = collective->outputs,
               .outputs = {},
               .part = collective->part};
    wait.inputs.insert(wait.inputs.end(), collective->inputs.begin(), collective->inputs.end());
    wait.gradient_in_forward = collective->gradient_in_forward;
    return wait;
  }

  const StorageRange& RangeOf(ValueId id) const { return ranges_[static_cast<size_t>(id)]; }

  const Program& program_;
  const std::vector<StorageRange>& ranges_;
  const std::map<ValueId, int>& layers_;
  std::vector<Op>& source_;
  std::pmr::monotonic_buffer_resource memory_;
  Ops ops_{&memory_};
};

}  // namespace

void Overlap(Program& program) {
  const std::vector<StorageRange> ranges = StorageRanges(program);
  for (size_t c = 0; c < program.chunks.size(); ++c) {
    std::map<ValueId, int> layers;
    const std::vector<Op>& forward = program.Ops(static_cast<int>(c), Piece::kForward);
    for (auto op = forward.begin(); op != forward.end(); ++op) {
      if (!IsUnshard(*op)) continue;
      const auto reader = std::find_if(op, forward.end(), Computes);
      layers.emplace(op->inputs[0], reader == forward.end() ? -1 : reader->layer);
    }
    for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
      ListOverlap(program, ranges, program.ops[c][static_cast<int>(piece)], layers).Run();
    }
  }
}

}  // namespace troupe::model
