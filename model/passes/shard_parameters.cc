#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

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

// Values and the indices of the operations of a list that use them, sorted.
using Uses = std::vector<std::pair<ValueId, size_t>>;

std::span<const Uses::value_type> UsesOf(const Uses& uses, ValueId value) {
  return {std::ranges::lower_bound(uses, value, {}, &Uses::value_type::first),
          std::ranges::upper_bound(uses, value, {}, &Uses::value_type::first)};
}

Uses WritersOfGradients(const Program& program, const std::vector<Op>& ops) {
  Uses writers;
  for (size_t i = 0; i < ops.size(); ++i) {
    const int accumulated = RulesOf(ops[i].kind).accumulated_output;
    if (accumulated < 0) continue;
    const ValueId written = ops[i].outputs[accumulated];
    if (program.value(written).role == Role::kGradient) writers.emplace_back(written, i);
  }
  std::ranges::sort(writers);
  return writers;
}

// Gives each gradient that `ops` compute a value of its own to be written to; sorted by last
// writer.
std::vector<MicrobatchGradient> SplitOff(Program& program, int chunk_index, std::vector<Op>& ops,
                                         const char* suffix) {
  std::vector<MicrobatchGradient> gradients;
  const Uses writers = WritersOfGradients(program, ops);
  // Two chunks compute a tied parameter's gradient if the rank has both ends of the model.
  for (ParameterEntry& entry : program.parameters) {
    if (!entry.trained()) continue;
    MicrobatchGradient made = {&entry, kNoValue, 0, Part::kInputGradient, false};
    for (const auto& [written, i] : UsesOf(writers, entry.gradient)) {
      if (made.whole == kNoValue) {
        const Value& gradient = program.value(entry.gradient);
        ValueType type = {gradient.dtype, gradient.dims, gradient.placement, gradient.segments};
        made.whole = AppendValue(program, gradient.name + suffix, Role::kMicrobatchGradient,
                                 chunk_index, std::move(type));
      }
      ops[i].outputs[RulesOf(ops[i].kind).accumulated_output] = made.whole;
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
    const ValueId whole = block;
    block = AppendValue(program, program.value(whole).name + ".scattered",
                        Role::kMicrobatchGradient, program.value(whole).chunk, std::move(types[0]));
    const Range rows = cut.Of(program.value(whole).dims[0].local, GroupSize(program.mesh, group),
                              IndexInGroup(program.mesh, group));
    program.values[block].view_of = whole;
    program.values[block].view_offset = rows.begin * program.value(whole).row_elements();
    Op scatter = {.kind = OpKind::kReduceScatter,
                  .attributes = attributes,
                  .inputs = {whole},
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
  for (const ParameterEntry& entry : program.parameters) {
    if (entry.trained()) TROUPE_RETURN_IF_ERROR(ShrinkAccumulator(program, entry));
  }
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

// The operations with which `entry` was built that gather it last, convert it and copy it.
// `makers`: the operations of Unshard by their output.
Gather GatherOf(const ParameterEntry& entry, const std::vector<const Op*>& makers) {
  Gather gather = {{}, entry.unsharded};
  for (ValueId made = entry.unsharded;
       gather.ops.empty() || gather.ops[0].kind != OpKind::kAllGather;) {
    const Op* const op = makers[static_cast<size_t>(made)];
    TROUPE_CHECK(op != nullptr, "nothing gathers value {}", made);
    gather.ops.insert(gather.ops.begin(), *op);
    made = op->inputs[0];
  }
  return gather;
}

// A copy of `gather` with its own values, for chunk `chunk_index`.
Gather GatherAnew(Program& program, Gather gather, int chunk_index) {
  ValueId made = kNoValue;
  for (Op& op : gather.ops) {
    const Value& like = program.value(op.outputs[0]);
    const bool is_view = like.view_of != kNoValue;
    const ValueId again = AppendValue(program, like.name + ".again", Role::kActivation, chunk_index,
                                      {like.dtype, like.dims, like.placement, like.segments});
    if (is_view) program.values[again].view_of = made;
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

// For each parameter the operations that gather it; Unshard keeps those across runs.
std::vector<Gather> MoveGathersOut(Program& program) {
  std::vector<const Op*> makers(program.values.size(), nullptr);
  for (const auto& pieces : program.ops) {
    for (const Op& op : pieces[static_cast<int>(Piece::kUnshard)])
      makers[static_cast<size_t>(op.outputs[0])] = &op;
  }
  std::vector<Gather> gathers;
  gathers.reserve(program.parameters.size());
  for (ParameterEntry& entry : program.parameters) {
    gathers.push_back(GatherOf(entry, makers));
    for (const Op& op : gathers.back().ops) program.values[op.outputs[0]].role = Role::kActivation;
    entry.converted = kNoValue;
    if (entry.gathered != gathers.back().ops[0].outputs[0]) continue;
    Value& block = program.values[entry.compute_copy];
    block.view_of = kNoValue;
    block.view_offset = 0;
    entry.gathered = kNoValue;
  }
  for (auto& pieces : program.ops) {
    std::erase_if(pieces[static_cast<int>(Piece::kUnshard)],
                  [](const Op& op) { return !IsAcrossRuns(op); });
  }
  return gathers;
}

Uses ReadersOfParameters(const Program& program, const std::vector<Op>& ops) {
  std::vector<bool> is_parameter(program.values.size(), false);
  for (const ParameterEntry& entry : program.parameters) is_parameter[entry.unsharded] = true;
  Uses readers;
  for (size_t i = 0; i < ops.size(); ++i) {
    for (const ValueId input : ops[i].inputs) {
      if (input != kNoValue && is_parameter[input]) readers.emplace_back(input, i);
    }
  }
  std::ranges::sort(readers);
  return readers;
}

// ZeRO-3: gathers parameters just before their first use in F, and again in B; the gathered values
// are freed after their last use there. If data_shard is divided into runs, these gathers start
// from the part that the rank holds, which is still gathered across runs once per step.
void ShardUnsharded(Program& program) {
  const std::vector<Gather> gathers = MoveGathersOut(program);
  for (int c = 0; c < static_cast<int>(program.chunks.size()); ++c) {
    for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
      std::vector<Op>& ops = program.ops[c][static_cast<int>(piece)];
      const Uses all_readers = ReadersOfParameters(program, ops);
      Insertions insertions;
      auto built = gathers.begin();
      for (const ParameterEntry& entry : program.parameters) {
        const Gather& first_built = *built++;
        const auto readers = UsesOf(all_readers, entry.unsharded);
        if (readers.empty()) continue;
        const int home = program.value(entry.value).chunk;
        const bool anew = piece == Piece::kBackward || home != c;
        Gather gather = anew ? GatherAnew(program, first_built, c) : first_built;
        // The gather belongs to W only if I does not need it.
        const bool for_input_gradient = std::ranges::any_of(readers, [&](const auto& reader) {
          return ops[reader.second].part != Part::kWeightGradient;
        });
        for (Op& op : gather.ops) {
          if (piece == Piece::kBackward) {
            op.part = for_input_gradient ? Part::kInputGradient : Part::kWeightGradient;
          }
          insertions.emplace(readers.front().second, std::move(op));
        }
        if (!anew) continue;
        for (const auto& [read, i] : readers)
          std::ranges::replace(ops[i].inputs, entry.unsharded, gather.unsharded);
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
