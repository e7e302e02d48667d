#include <algorithm>
#include <iterator>
#include <map>

#include "base/check.h"
#include "model/passes/insertions.h"
#include "model/passes/passes.h"
#include "model/program/builder.h"
#include "model/program/op_rules.h"

namespace troupe::model {
namespace {

// The gradient of one parameter that one list of operations computes for one microbatch.
struct MicrobatchGradient {
  ParameterEntry* entry;
  ValueId whole;
  size_t last_writer;  // index in the list
  Part part;
  bool gradient_in_forward;
};

// Gives each gradient that `ops` compute a value of its own to be written to; sorted by last
// writer.
std::vector<MicrobatchGradient> SplitOff(Program& program, int chunk_index, std::vector<Op>& ops,
                                         const char* suffix) {
  std::vector<MicrobatchGradient> gradients;
  // Two chunks compute a tied parameter's gradient if the rank has both ends of the model.
  for (ParameterEntry& entry : program.parameters) {
    MicrobatchGradient made = {&entry, kNoValue, 0, Part::kInputGradient, false};
    for (size_t i = 0; i < ops.size(); ++i) {
      const int accumulated = RulesOf(ops[i].kind).accumulated_output;
      if (accumulated < 0 || ops[i].outputs[accumulated] != entry.gradient) continue;
      if (made.whole == kNoValue) {
        const Value& gradient = program.value(entry.gradient);
        ValueType type = {gradient.dtype, gradient.dims, gradient.placement, gradient.segments};
        made.whole = AppendValue(program, gradient.name + suffix, Role::kMicrobatchGradient,
                                 chunk_index, std::move(type));
      }
      ops[i].outputs[accumulated] = made.whole;
      made.last_writer = i;
      // If W computes any part of the gradient, it is complete only after W.
      if (ops[i].part == Part::kWeightGradient) made.part = Part::kWeightGradient;
      made.gradient_in_forward = ops[i].gradient_in_forward;
    }
    if (made.whole != kNoValue) gradients.push_back(made);
  }
  std::stable_sort(gradients.begin(), gradients.end(),
                   [](const MicrobatchGradient& a, const MicrobatchGradient& b) {
                     return a.last_writer < b.last_writer;
                   });
  return gradients;
}

// Reduce-scatters `gradient` over the parameter's shard groups in sequence and adds this rank's
// block to the accumulator. `before`: the position in the list for each group and for the
// accumulation.
Status Scatter(Program& program, const MicrobatchGradient& gradient, DType reduce_dtype,
               const std::vector<size_t>& before, Insertions* insertions) {
  const std::vector<ParameterEntry::Shards>& levels = gradient.entry->shards;
  ValueId block = gradient.whole;
  for (size_t level = 0; level < levels.size(); ++level) {
    const auto& [group, cut] = levels[level];
    ReduceScatterAttributes attributes = {{group, CollectivePurpose::kGradient}};
    attributes.wire = reduce_dtype;
    attributes.cut = cut;
    TROUPE_ASSIGN_OR_RETURN(std::vector<ValueType> types,
                            InferTypes(program, OpKind::kReduceScatter, attributes, {&block, 1}));
    const Value whole = program.value(block);
    block = AppendValue(program, whole.name + ".scattered", Role::kMicrobatchGradient, whole.chunk,
                        std::move(types[0]));
    const Range rows = cut.Of(whole.dims[0].local, GroupSize(program.mesh, group),
                              IndexInGroup(program.mesh, group));
    program.values[block].view_of = whole.id;
    program.values[block].view_offset = rows.begin * whole.row_elements();
    Op scatter = {.kind = OpKind::kReduceScatter,
                  .attributes = attributes,
                  .inputs = {whole.id},
                  .outputs = {block},
                  .part = gradient.part};
    // If another group continues with the block, only a part of it remains.
    scatter.consumes_input = levels.size() == 1;
    scatter.gradient_in_forward = gradient.gradient_in_forward;
    insertions->emplace(before[level], std::move(scatter));
  }
  Op accumulate = {.kind = OpKind::kAccumulate,
                   .inputs = {block},
                   .outputs = {gradient.entry->gradient},
                   .part = gradient.part};
  accumulate.gradient_in_forward = gradient.gradient_in_forward;
  insertions->emplace(before.back(), std::move(accumulate));
  return OkStatus();
}

// Shrinks the accumulator of `entry` to this rank's block.
Status ShrinkAccumulator(Program& program, const ParameterEntry& entry) {
  Value& accumulator = program.values[entry.gradient];
  for (const auto& [group, cut] : entry.shards) {
    ReduceScatterAttributes attributes = {{group, CollectivePurpose::kGradient}};
    attributes.cut = cut;
    TROUPE_ASSIGN_OR_RETURN(
        std::vector<ValueType> types,
        InferTypes(program, OpKind::kReduceScatter, attributes, {&entry.gradient, 1}));
    accumulator.dims = std::move(types[0].dims);
    accumulator.placement = types[0].placement;
    accumulator.segments.clear();
  }
  return OkStatus();
}

// Gradients that are scattered together.
struct Bucket {
  std::vector<MicrobatchGradient>::const_iterator begin, end;
  size_t ready;  // index in the list after the last writer
};

// ZeRO-2: each bucket is scattered as soon as its last gradient is computed.
Status ShardGradients(Program& program, int64_t bucket_elements, DType reduce_dtype) {
  struct List {
    std::vector<Op>* ops;
    std::vector<MicrobatchGradient> made;
  };
  std::vector<List> lists;
  for (int c = 0; c < static_cast<int>(program.chunks.size()); ++c) {
    for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
      std::vector<Op>& ops = program.ops[c][static_cast<int>(piece)];
      lists.push_back(
          {&ops, SplitOff(program, c, ops, piece == Piece::kForward ? ".forward" : ".backward")});
    }
  }
  for (const ParameterEntry& entry : program.parameters)
    TROUPE_RETURN_IF_ERROR(ShrinkAccumulator(program, entry));
  for (List& list : lists) {
    std::vector<Bucket> buckets;
    for (auto begin = list.made.begin(); begin != list.made.end();) {
      auto end = begin;
      int64_t elements = 0;
      while (end != list.made.end() &&
             (end == begin || elements + program.value(end->whole).elements() <= bucket_elements)) {
        elements += program.value(end++->whole).elements();
      }
      buckets.push_back({begin, end, std::prev(end)->last_writer + 1});
      begin = end;
    }
    Insertions insertions;
    for (size_t b = 0; b < buckets.size(); ++b) {
      for (auto gradient = buckets[b].begin; gradient != buckets[b].end; ++gradient) {
        // Each group in turn may use the time in which the next bucket is computed.
        std::vector<size_t> before = {buckets[b].ready};
        const size_t groups = gradient->entry->shards.size();
        for (size_t later = b + 1; groups > 1 && later <= b + groups; ++later)
          before.push_back(later < buckets.size() ? buckets[later].ready : list.ops->size());
        TROUPE_RETURN_IF_ERROR(Scatter(program, *gradient, reduce_dtype, before, &insertions));
      }
    }
    Insert(*list.ops, std::move(insertions));
  }
  return OkStatus();
}

// The operations that gather a parameter for one list, in order, and the value that the list's
// operations read.
struct Gather {
  std::vector<Op> ops;
  ValueId unsharded;
};

// Extracts from `unshard`, with which `entry` was built, the operations that gather it last,
// convert it and copy it.
Gather GatherOf(const ParameterEntry& entry, const std::vector<Op>& unshard) {
  Gather gather = {{}, entry.unsharded};
  for (ValueId made = entry.unsharded;
       gather.ops.empty() || gather.ops[0].kind != OpKind::kAllGather;) {
    const auto op = std::find_if(unshard.begin(), unshard.end(),
                                 [&](const Op& other) { return other.outputs[0] == made; });
    TROUPE_CHECK(op != unshard.end(), "nothing gathers value {}", made);
    gather.ops.insert(gather.ops.begin(), *op);
    made = op->inputs[0];
  }
  return gather;
}

// A copy of `gather` with its own values, for chunk `chunk_index`.
Gather GatherAnew(Program& program, Gather gather, int chunk_index) {
  ValueId made = kNoValue;
  for (Op& op : gather.ops) {
    const Value like = program.value(op.outputs[0]);
    const ValueId again = AppendValue(program, like.name + ".again", Role::kActivation, chunk_index,
                                      {like.dtype, like.dims, like.placement, like.segments});
    if (like.view_of != kNoValue) program.values[again].view_of = made;
    if (made != kNoValue) op.inputs = {made};
    op.outputs = {again};
    made = again;
  }
  gather.unsharded = made;
  return gather;
}

bool IsAcrossRuns(const Op& op) {
  return op.kind == OpKind::kAllGather &&
         CollectiveOf(op).group.part == CollectiveGroup::Part::kAcross;
}

// ZeRO-3: gathers parameters just before their first use in F, and again in B; the gathered values
// are freed after their last use there. If data_shard is divided into runs, these gathers start
// from the part that the rank holds, which is still gathered across runs once per step.
void ShardUnsharded(Program& program) {
  std::vector<std::vector<Op>> unshards;  // by chunk index
  for (auto& pieces : program.ops) {
    std::vector<Op>& unshard = pieces[static_cast<int>(Piece::kUnshard)];
    unshards.push_back(unshard);
    std::erase_if(unshard, [](const Op& op) { return !IsAcrossRuns(op); });
  }
  std::vector<Gather> gathers;
  for (ParameterEntry& entry : program.parameters) {
    const int home = program.value(entry.value).chunk;
    gathers.push_back(GatherOf(entry, unshards[static_cast<size_t>(home)]));
    for (const Op& op : gathers.back().ops) program.values[op.outputs[0]].role = Role::kActivation;
    entry.converted = kNoValue;
    if (entry.gathered != gathers.back().ops[0].outputs[0]) continue;
    Value& block = program.values[entry.compute_copy];
    block.view_of = kNoValue;
    block.view_offset = 0;
    entry.gathered = kNoValue;
  }
  for (int c = 0; c < static_cast<int>(program.chunks.size()); ++c) {
    for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
      std::vector<Op>& ops = program.ops[c][static_cast<int>(piece)];
      Insertions insertions;
      auto built = gathers.begin();
      for (const ParameterEntry& entry : program.parameters) {
        const Gather& first_built = *built++;
        const auto reads = [&](const Op& op) {
          return std::find(op.inputs.begin(), op.inputs.end(), entry.unsharded) != op.inputs.end();
        };
        const auto first = std::find_if(ops.begin(), ops.end(), reads);
        if (first == ops.end()) continue;
        const int home = program.value(entry.value).chunk;
        const bool anew = piece == Piece::kBackward || home != c;
        Gather gather = anew ? GatherAnew(program, first_built, c) : first_built;
        // The gather belongs to W only if I does not need it.
        const bool for_input_gradient = std::any_of(first, ops.end(), [&](const Op& op) {
          return reads(op) && op.part != Part::kWeightGradient;
        });
        for (Op& op : gather.ops) {
          if (piece == Piece::kBackward) {
            op.part = for_input_gradient ? Part::kInputGradient : Part::kWeightGradient;
          }
          insertions.emplace(static_cast<size_t>(first - ops.begin()), op);
        }
        if (!anew) continue;
        for (auto op = first; op != ops.end(); ++op) {
          std::replace(op->inputs.begin(), op->inputs.end(), entry.unsharded, gather.unsharded);
        }
      }
      Insert(ops, std::move(insertions));
    }
  }
}

}  // namespace

Status ShardParameters(Program& program, int zero_stage, int64_t bucket_elements,
                       DType reduce_dtype) {
  if (zero_stage >= 2) {
    TROUPE_RETURN_IF_ERROR(ShardGradients(program, bucket_elements, reduce_dtype));
  }
  if (zero_stage >= 3) ShardUnsharded(program);
  return OkStatus();
}

}  // namespace troupe::model
