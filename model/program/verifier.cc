#include "model/program/verifier.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "model/program/builder.h"
#include "model/program/collective_types.h"
#include "model/program/op_rules.h"
#include "model/program/storage.h"
#include "model/program/verify_update.h"

namespace troupe::model {
namespace {

// Follows one order of a step's operations and tracks which values are computed or overwritten and
// which operations write gradients.
class StepChecker {
 public:
  explicit StepChecker(const Program& program)
      : program_(program),
        made_(program.values.size(), false),
        rows_made_(program.values.size(), 0),
        overwritten_(program.values.size(), nullptr),
        members_(program.values.size()),
        writers_(program.values.size()),
        ranges_(StorageRanges(program)) {
    for (const Value& value : program.values) {
      switch (value.role) {
        case Role::kParameter:
        case Role::kOptimizerState:
        case Role::kInput:
        case Role::kConstant:
          made_[value.id] = value.view_of == kNoValue;
          break;
        default:
          break;
      }
      members_[static_cast<size_t>(RangeOf(value.id).root)].push_back(value.id);
    }
    // A sharded master may be a view of the gathered copy.
    for (const ParameterEntry& entry : program.parameters) made_[entry.value] = true;
    for (const ChunkInterface& chunk : program.chunks) {
      if (chunk.input != kNoValue) made_[chunk.input] = true;
      if (chunk.output_gradient != kNoValue) made_[chunk.output_gradient] = true;
    }
  }

  // `ends_later`: later pieces wait for collectives begun here.
  Status Run(const std::vector<Op>& ops, const char* piece, bool ends_later = false) {
    const auto before = in_flight_;
    for (const Op& op : ops) {
      if (Status status = Check(op); !status.ok()) {
        return Internal("{}: {}: {}", piece, ToText(op, program_), Message(status));
      }
    }
    for (const auto& [output, op] : in_flight_) {
      if (ends_later || op->last_microbatch || before.contains(output)) continue;
      return Internal("{}: {}: no operation waits for it", piece, ToText(*op, program_));
    }
    return OkStatus();
  }

  Status NothingIsInFlightAfter(const char* piece) const {
    if (in_flight_.empty()) return OkStatus();
    return Internal("{}: {}: no operation has waited for it", piece,
                    ToText(*in_flight_.begin()->second, program_));
  }

  bool Made(ValueId value) const { return made_[value]; }
  bool Overwritten(ValueId value) const { return overwritten_[value] != nullptr; }

 private:
  // A value that a collective in flight reads or writes.
  struct Use {
    ValueId id;
    const Op* op;
  };
  using Uses = std::multimap<ValueId, Use>;  // by root of storage

  const StorageRange& RangeOf(ValueId id) const { return ranges_[static_cast<size_t>(id)]; }

  Status Check(const Op& op) {
    if (op.kind == OpKind::kWait) return CheckWait(op);
    TROUPE_RETURN_IF_ERROR(CheckInFlight(op));
    TROUPE_RETURN_IF_ERROR(CheckCollectiveTypes(program_, op));
    if (op.asynchronous) {
      if (!IsCollective(op.kind)) {
        return InvalidArgument("asynchronous collectives are not allowed here");
      }
      Begin(op);
    }
    for (const ValueId input : op.inputs) TROUPE_RETURN_IF_ERROR(CheckRead(input));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<ValueType> types,
                            InferTypes(program_, op.kind, op.attributes, op.inputs));
    if (types.size() != op.outputs.size()) {
      return InvalidArgument("there are {} outputs, must be {}", op.outputs.size(), types.size());
    }
    for (size_t i = 0; i < types.size(); ++i) {
      TROUPE_RETURN_IF_ERROR(CheckType(program_.value(op.outputs[i]), types[i]));
      TROUPE_RETURN_IF_ERROR(Write(op, static_cast<int>(i)));
    }
    return OkStatus();
  }

  Status CheckWait(const Op& op) {
    const auto begun = in_flight_.find(op.inputs.empty() ? kNoValue : op.inputs[0]);
    if (begun == in_flight_.end())
      return InvalidArgument("it waits for a collective that was not started");
    std::vector<ValueId> due = begun->second->outputs;
    due.insert(due.end(), begun->second->inputs.begin(), begun->second->inputs.end());
    if (due != op.inputs || op.part != begun->second->part ||
        op.gradient_in_forward != begun->second->gradient_in_forward) {
      return InvalidArgument("it does not match {}", ToText(*begun->second, program_));
    }
    End(*begun->second);
    in_flight_.erase(begun);
    return OkStatus();
  }

  // Until its wait, no operation may touch the outputs of a collective in flight or write its
  // inputs.
  Status CheckInFlight(const Op& op) const {
    const auto check = [&](ValueId id, bool writes) -> Status {
      const Op* user = UserOf(made_in_flight_, id);
      if (user == nullptr && writes) user = UserOf(read_in_flight_, id);
      if (user == nullptr) return OkStatus();
      return InvalidArgument("{} is in use by {}", program_.value(id).name,
                             ToText(*user, program_));
    };
    for (const ValueId id : op.inputs) TROUPE_RETURN_IF_ERROR(check(id, op.consumes_input));
    for (const ValueId id : op.outputs) TROUPE_RETURN_IF_ERROR(check(id, true));
    return OkStatus();
  }

  // The user of any part of `id`'s storage; null: none.
  const Op* UserOf(const Uses& uses, ValueId id) const {
    const StorageRange& range = RangeOf(id);
    const auto [begin, end] = uses.equal_range(range.root);
    const auto use = std::find_if(
        begin, end, [&](const auto& u) { return RangeOf(u.second.id).Overlaps(range); });
    return use == end ? nullptr : use->second.op;
  }

  void Begin(const Op& op) {
    in_flight_[op.outputs[0]] = &op;
    for (const ValueId id : op.outputs) made_in_flight_.emplace(RangeOf(id).root, Use{id, &op});
    for (const ValueId id : op.inputs) read_in_flight_.emplace(RangeOf(id).root, Use{id, &op});
  }

  void End(const Op& op) {
    const auto forget = [&](Uses& uses, const std::vector<ValueId>& ids) {
      for (const ValueId id : ids) {
        const auto [begin, end] = uses.equal_range(RangeOf(id).root);
        const auto use =
            std::find_if(begin, end, [&](const auto& u) { return u.second.op == &op; });
        if (use != end) uses.erase(use);
      }
    };
    forget(made_in_flight_, op.outputs);
    forget(read_in_flight_, op.inputs);
  }

  Status CheckRead(ValueId id) {
    const Value& value = program_.value(id);
    if (overwritten_[id] != nullptr) {
      return InvalidArgument("{} was overwritten by {}", value.name,
                             ToText(*overwritten_[id], program_));
    }
    if (made_[id]) return OkStatus();
    // Rows of another value need no operation; they are strictly fewer and have the type of the
    // whole.
    if (value.view_of != kNoValue) {
      const Value& whole = program_.value(value.view_of);
      const bool is_rows = value.dims[0].local < whole.dims[0].local &&
                           value.dtype == whole.dtype &&
                           std::equal(value.dims.begin() + 1, value.dims.end(),
                                      whole.dims.begin() + 1, whole.dims.end());
      if (is_rows && !IsPlacedAsRowsOf(value.placement, whole.placement)) {
        return InvalidArgument("{} is {} but has rows of {}, which is {}", value.name,
                               ToText(value.placement), whole.name, ToText(whole.placement));
      }
      if (is_rows) return CheckRead(value.view_of);
    }
    return InvalidArgument("{} ({}) is read before an operation has written it", value.name,
                           ToText(value.placement));
  }

  Status CheckType(const Value& value, const ValueType& type) {
    if (value.placement != type.placement) {
      return InvalidArgument("{} is declared {} but is {}", value.name, ToText(value.placement),
                             ToText(type.placement));
    }
    if (value.dtype != type.dtype || value.dims.size() != type.dims.size() ||
        value.segments != type.segments ||
        !std::equal(value.dims.begin(), value.dims.end(), type.dims.begin(),
                    [](const Dim& a, const Dim& b) {
                      return a.local == b.local && a.global == b.global;
                    })) {
      return InvalidArgument(
          "{} is declared with another dtype or other extents than those of the operation",
          value.name);
    }
    return OkStatus();
  }

  Status Write(const Op& op, int output_index) {
    const ValueId output = op.outputs[output_index];
    const bool in_update = op.kind == OpKind::kControlTotals || op.kind == OpKind::kControlRouted ||
                           op.kind == OpKind::kSumOfSquares;
    if (RulesOf(op.kind).accumulated_output == output_index) {
      std::vector<const Op*>& writers = writers_[output];
      for (const Op* other : writers) {
        if (other->kind == op.kind && other->inputs == op.inputs) {
          return InvalidArgument("{} is accumulated twice by the same operation",
                                 program_.value(output).name);
        }
      }
      const Role role = program_.value(output).role;
      const bool is_gradient = role == Role::kGradient || role == Role::kMicrobatchGradient;
      if (is_gradient && op.first_writer != writers.empty()) {
        return InvalidArgument("{} must be overwritten by its first writer and by no other one",
                               program_.value(output).name);
      }
      writers.push_back(&op);
    } else if (made_[output] && !in_update) {
      return InvalidArgument("{} is written a second time", program_.value(output).name);
    }
    made_[output] = true;
    // A reduce-scatter in place, even with an empty block, leaves the rest of its input
    // unspecified.
    const bool scatters_in_place =
        op.kind == OpKind::kReduceScatter && RangeOf(op.inputs[0]).root == RangeOf(output).root;
    if (op.consumes_input || scatters_in_place) Overwrite(op.inputs[0], op);
    // A whole value is complete once all its rows are written.
    for (ValueId rows = output; IsRowsOfParent(program_.value(rows));) {
      const int64_t count = program_.value(rows).dims[0].local;
      rows = program_.value(rows).view_of;
      int64_t& made = rows_made_[static_cast<size_t>(rows)];
      made += count;
      if (made < program_.value(rows).dims[0].local) break;
      made_[rows] = true;
    }
    if (op.kind == OpKind::kCopy || in_update) return OkStatus();
    Overwrite(output, op);
    return OkStatus();
  }

  // Marks other values that overlap the storage of `value` as overwritten.
  void Overwrite(ValueId value, const Op& op) {
    const StorageRange& range = RangeOf(value);
    for (const ValueId member : members_[range.root]) {
      const bool is_output = std::count(op.outputs.begin(), op.outputs.end(), member) > 0;
      // A rank's own block stays in place among all blocks.
      const bool is_own_block = op.kind == OpKind::kAllGather && member == op.inputs[0];
      if (is_output || is_own_block || !made_[member] ||
          (member != value && (IsPartOf(member, value) || IsPartOf(value, member)))) {
        continue;
      }
      if (RangeOf(member).Overlaps(range)) overwritten_[member] = &op;
    }
  }

  // True if `part` is rows of `whole`, directly or through other rows: the same placement with
  // fewer rows.
  bool IsPartOf(ValueId part, ValueId whole) const {
    while (part != whole) {
      if (!IsRowsOfParent(program_.value(part))) return false;
      part = program_.value(part).view_of;
    }
    return true;
  }

  bool IsRowsOfParent(const Value& value) const {
    if (value.view_of == kNoValue) return false;
    const Value& parent = program_.value(value.view_of);
    return value.dims[0].local < parent.dims[0].local &&
           IsPlacedAsRowsOf(value.placement, parent.placement);
  }

  const Program& program_;
  std::vector<bool> made_;
  std::vector<int64_t> rows_made_;      // by whole value: rows written by operations on its rows
  std::vector<const Op*> overwritten_;  // the operation that overwrote it
  std::vector<std::vector<ValueId>> members_;    // by storage root
  std::vector<std::vector<const Op*>> writers_;  // by accumulator
  std::vector<StorageRange> ranges_;
  std::map<ValueId, const Op*> in_flight_;  // begun collectives, by first output
  Uses made_in_flight_, read_in_flight_;
};

std::pair<CollectiveGroup, CollectivePurpose> GroupAndPurpose(const Op& op) {
  const CollectiveAttributes& attributes = CollectiveOf(op);
  return {attributes.group, attributes.purpose};
}

bool MovesParameters(const Program& program, const Op& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) {
    const Role role = program.value(id).role;
    return role == Role::kParameter || role == Role::kComputeCopy || role == Role::kGradient ||
           role == Role::kMicrobatchGradient;
  });
}

// F, I and W contain no conversions of parameters or gradients except those sharded within a step;
// the others belong to Unshard and Reduce.
Status CheckPieceContents(const Program& program) {
  for (size_t c = 0; c < program.chunks.size(); ++c) {
    for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
      for (const Op& op : program.Ops(static_cast<int>(c), piece)) {
        if (!AreAttributesOf(op.kind, op.attributes)) {
          return Internal("{}: {}: it has the attributes of another kind", Name(piece),
                          ToText(op, program));
        }
        if (op.last_microbatch && (piece == Piece::kForward || !IsCollective(op.kind) ||
                                   op.part != Part::kWeightGradient)) {
          return Internal("{}: {}: only a collective of W can run with the last microbatch only",
                          Name(piece), ToText(op, program));
        }
        if (!IsCollective(op.kind)) continue;
        // Within F and its derivative tokens are exchanged over any axis, but parameters are not.
        const std::optional<CollectiveRules>& rules = RulesOf(op.kind).collective;
        if (rules.has_value() && rules->pattern == CollectivePattern::kExchange) continue;
        if (RowPartsOf(op) > 1) {
          return Internal("{}: {}: its parts were not cut", Name(piece), ToText(op, program));
        }
        const auto& [group, purpose] = GroupAndPurpose(op);
        // Routed tokens and the load of routers are exchanged too.
        if (purpose == CollectivePurpose::kDispatch && !MovesParameters(program, op)) continue;
        // The conversions of parameters and gradients that are sharded within a step.
        const bool is_of_shards =
            purpose == CollectivePurpose::kUnshard ||
            // Begun early in B, but part of Reduce.
            (op.last_microbatch && op.asynchronous && purpose == CollectivePurpose::kGradient) ||
            (op.kind == OpKind::kReduceScatter &&
             program.value(op.inputs[0]).role == Role::kMicrobatchGradient);
        if (is_of_shards) continue;
        if (group.kind != CollectiveGroup::Kind::kAxes || (group.axes & DataGroup().axes)) {
          return Internal("{}: {}: conversions on {} belong to unshard and reduce", Name(piece),
                          ToText(op, program), ToText(group));
        }
      }
    }
  }
  return OkStatus();
}

Status CheckBoundaries(const Program& program) {
  for (const ChunkInterface& chunk : program.chunks) {
    for (const auto& [value, gradient] : {std::pair(chunk.input, chunk.input_gradient),
                                          std::pair(chunk.output, chunk.output_gradient)}) {
      if (value == kNoValue) continue;
      const Placement& due = program.value(value).placement;
      Placement by_rows = RowsPlacement();
      // With sequence parallelism rows are also sharded over tensor.
      if (due[Axis::kTensor] == Shard(0) || due[Axis::kTensor] == Shard(0, ShardHow::kParts)) {
        by_rows[Axis::kTensor] = due[Axis::kTensor];
      }
      if (due != by_rows) {
        return Internal("chunk {}: boundary {} is {}, must be {}", chunk.chunk,
                        program.value(value).name, ToText(due), ToText(by_rows));
      }
      if (gradient == kNoValue) continue;  // all parameters below are frozen
      if (program.value(gradient).placement != GradientPlacement(due)) {
        return Internal("chunk {}: boundary {} is {} but its gradient is {}", chunk.chunk,
                        program.value(value).name, ToText(due),
                        ToText(program.value(gradient).placement));
      }
    }
  }
  return OkStatus();
}

Status CheckStep(const Program& program, std::span<const Piece> backward) {
  StepChecker checker(program);
  TROUPE_RETURN_IF_ERROR(checker.Run(program.initialize, "initialize"));
  const int chunks = static_cast<int>(program.chunks.size());
  const auto run = [&](int c, Piece piece) {
    return checker.Run(program.Ops(c, piece), Name(piece));
  };
  for (int c = 0; c < chunks; ++c) {
    TROUPE_RETURN_IF_ERROR(checker.Run(program.Ops(c, Piece::kUnshard), "unshard", true));
  }
  for (int c = 0; c < chunks; ++c) TROUPE_RETURN_IF_ERROR(run(c, Piece::kForward));
  TROUPE_RETURN_IF_ERROR(checker.NothingIsInFlightAfter("forward"));
  for (int c = chunks - 1; c >= 0; --c) {
    for (const Piece piece : backward) TROUPE_RETURN_IF_ERROR(run(c, piece));
  }
  for (const ChunkInterface& chunk : program.chunks) {
    for (const ValueId made : {chunk.output, chunk.input_gradient}) {
      if (made != kNoValue && !checker.Made(made)) {
        return Internal("chunk {}: no operation writes boundary {}", chunk.chunk,
                        program.value(made).name);
      }
    }
  }
  for (const Value& value : program.values) {
    if (value.role == Role::kMicrobatchGradient && checker.Made(value.id) &&
        value.view_of == kNoValue && !checker.Overwritten(value.id)) {
      return Internal("{}, {}, is never scattered", value.name, ToText(value.placement));
    }
  }
  for (int c = chunks - 1; c >= 0; --c) TROUPE_RETURN_IF_ERROR(run(c, Piece::kReduce));
  TROUPE_RETURN_IF_ERROR(checker.NothingIsInFlightAfter("reduce"));
  return checker.Run(program.update, "update");
}

}  // namespace

Status VerifyProgram(const Program& program) {
  TROUPE_RETURN_IF_ERROR(CheckPieceContents(program));
  const Piece whole[] = {Piece::kBackward};
  const Piece split[] = {Piece::kInputGradient, Piece::kWeightGradient};
  TROUPE_RETURN_IF_ERROR(CheckStep(program, whole));
  TROUPE_RETURN_IF_ERROR(CheckStep(program, split));
  TROUPE_RETURN_IF_ERROR(CheckBoundaries(program));
  TROUPE_RETURN_IF_ERROR(CheckOwners(program));
  return CheckOptimizer(program);
}

}  // namespace troupe::model
