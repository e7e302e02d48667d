#include "model/program/derivative.h"

#include <algorithm>

#include "base/check.h"
#include "model/program/builder.h"
#include "model/program/op_rules.h"
#include "model/program/storage.h"

namespace troupe::model {

GradientContext::GradientContext(Program& program, int chunk_index, bool of_input)
    : program_(program),
      chunk_index_(chunk_index),
      gradients_(program.values.size(), kNoValue),
      forward_(program.Ops(chunk_index, Piece::kForward)),
      maker_(program.values.size(), nullptr),
      parameter_gradient_(program.values.size(), kNoValue),
      roots_(StorageRoots(program)),
      needs_gradient_(program.values.size(), false),
      backward_(program.ops[chunk_index][static_cast<int>(Piece::kBackward)]) {
  const auto need = [&](ValueId value) {
    needs_gradient_[static_cast<size_t>(roots_[static_cast<size_t>(value)])] = true;
  };
  for (const ParameterEntry& entry : program.parameters) {
    parameter_gradient_[entry.unsharded] = entry.gradient;
    if (entry.trained()) need(entry.unsharded);
  }
  if (const ValueId input = program.chunks[chunk_index].input; of_input && input != kNoValue)
    need(input);
  for (const Op& op : forward_) {
    const bool reached = AnyNeedsGradient(op.inputs);
    for (const ValueId output : op.outputs) {
      maker_[static_cast<size_t>(output)] = &op;
      if (reached) need(output);
    }
  }
}

bool GradientContext::NeedsGradient(ValueId value) const {
  return needs_gradient_[static_cast<size_t>(roots_[static_cast<size_t>(value)])];
}

bool GradientContext::AnyNeedsGradient(const std::vector<ValueId>& values) const {
  return std::ranges::any_of(
      values, [&](ValueId value) { return value != kNoValue && NeedsGradient(value); });
}

ValueId GradientContext::GradientOf(ValueId value) const {
  return value < static_cast<ValueId>(gradients_.size()) ? gradients_[value] : kNoValue;
}

const Op* GradientContext::ReaderOf(ValueId value, OpKind kind) const {
  const Op* const maker = MakerOf(value);
  const Op* const end = forward_.data() + forward_.size();
  const Op* const reader =
      std::find_if(maker == nullptr ? forward_.data() : maker + 1, end, [&](const Op& op) {
        return op.kind == kind && std::ranges::find(op.inputs, value) != op.inputs.end();
      });
  return reader == end ? nullptr : reader;
}

const Op* GradientContext::MakerOf(ValueId value) const {
  return maker_[static_cast<size_t>(value)];
}

ValueId GradientContext::AgainOf(ValueId value) const {
  const auto found = again_.find(value);
  return found == again_.end() ? value : found->second;
}

StatusOr<ValueId> GradientContext::EmitAgain(OpKind kind, const Attributes& attributes,
                                             const std::vector<ValueId>& inputs, ValueId value) {
  TROUPE_ASSIGN_OR_RETURN(std::vector<ValueType> types,
                          InferTypes(program_, kind, attributes, inputs));
  if (types[0].placement != program_.value(value).placement) {
    return Internal("{}: the recomputed {} is {}, must be {}", Name(kind),
                    program_.value(value).name, ToText(types[0].placement),
                    ToText(program_.value(value).placement));
  }
  const ValueId made = AppendValue(program_, program_.value(value).name + ".again",
                                   Role::kActivation, chunk_index_, std::move(types[0]));
  backward_.push_back({.kind = kind,
                       .attributes = attributes,
                       .inputs = inputs,
                       .outputs = {made},
                       .part = Part::kInputGradient});
  again_[value] = made;
  return made;
}

ValueId GradientContext::RowsOfGradient(ValueId target) {
  if (program_.value(target).view_of == kNoValue) return kNoValue;
  const Value rows = program_.value(target);
  TROUPE_CHECK(gradients_[target] == kNoValue, "{} has two uses", rows.name);
  const Value whole = program_.value(rows.view_of);
  if (gradients_[whole.id] == kNoValue) {
    ValueType type = {whole.dtype, whole.dims, GradientPlacement(whole.placement), whole.segments};
    gradients_[whole.id] =
        AppendValue(program_, "d/" + whole.name, Role::kActivation, chunk_index_, std::move(type));
  }
  ValueType type = {rows.dtype, rows.dims, GradientPlacement(rows.placement), rows.segments};
  const ValueId view =
      AppendValue(program_, "d/" + rows.name, Role::kActivation, chunk_index_, std::move(type));
  program_.values[view].view_of = gradients_[whole.id];
  program_.values[view].view_offset = rows.view_offset;
  return view;
}

Status GradientContext::Emit(OpKind kind, const Attributes& attributes,
                             const std::vector<ValueId>& inputs,
                             const std::vector<ValueId>& targets) {
  if (!AnyNeedsGradient(targets)) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(std::vector<ValueType> types,
                          InferTypes(program_, kind, attributes, inputs));
  TROUPE_CHECK(types.size() == targets.size(), "{} has {} outputs", Name(kind), types.size());
  Op op = {.kind = kind, .attributes = attributes, .inputs = inputs, .row_chunk = row_chunk_};
  op.part = Part::kWeightGradient;
  std::vector<std::pair<ValueId, ValueId>> summands;  // target, value
  for (size_t i = 0; i < targets.size(); ++i) {
    const ValueId target = targets[i];
    const Placement due = GradientPlacement(program_.value(target).placement);
    if (types[i].placement != due) {
      return Internal("{}: the gradient of {} is {}, must be {}", Name(kind),
                      program_.value(target).name, ToText(types[i].placement), ToText(due));
    }
    if (parameter_gradient_[target] != kNoValue) {
      op.outputs.push_back(parameter_gradient_[target]);
      continue;
    }
    if (!NeedsGradient(target)) {
      op.outputs.push_back(AppendValue(program_, "unread/" + program_.value(target).name,
                                       Role::kActivation, chunk_index_, std::move(types[i])));
      continue;
    }
    op.part = Part::kInputGradient;
    ValueId output = RowsOfGradient(target);
    if (output == kNoValue) {
      output = AppendValue(program_, "d/" + program_.value(target).name, Role::kActivation,
                           chunk_index_, std::move(types[i]));
      summands.emplace_back(target, output);
    } else {
      gradients_[target] = output;
    }
    op.outputs.push_back(output);
  }
  backward_.push_back(std::move(op));
  for (const auto& [target, value] : summands) TROUPE_RETURN_IF_ERROR(Contribute(target, value));
  return OkStatus();
}

Status GradientContext::Contribute(ValueId target, ValueId gradient) {
  if (!NeedsGradient(target)) return OkStatus();
  if (gradients_[target] == kNoValue) {
    gradients_[target] = gradient;
    return OkStatus();
  }
  const std::vector<ValueId> inputs = {gradients_[target], gradient};
  TROUPE_ASSIGN_OR_RETURN(std::vector<ValueType> types,
                          InferTypes(program_, OpKind::kAdd, NoAttributes(), inputs));
  const ValueId sum = AppendValue(program_, "d/" + program_.value(target).name + ".sum",
                                  Role::kActivation, chunk_index_, std::move(types[0]));
  Op op = {.kind = OpKind::kAdd, .inputs = inputs, .outputs = {sum}, .part = Part::kInputGradient};
  op.row_chunk = row_chunk_;
  backward_.push_back(std::move(op));
  gradients_[target] = sum;
  return OkStatus();
}

Status Differentiate(Program& program, int chunk_index, bool of_input) {
  GradientContext context(program, chunk_index, of_input);
  ChunkInterface& chunk = program.chunks[chunk_index];
  if (chunk.output_gradient != kNoValue)
    TROUPE_RETURN_IF_ERROR(context.Contribute(chunk.output, chunk.output_gradient));
  const std::vector<Op>& forward = context.forward_;
  for (auto op = forward.rbegin(); op != forward.rend(); ++op) {
    const OpRules& rules = RulesOf(op->kind);
    const bool is_loss = op->kind == OpKind::kCrossEntropy ||
                         op->kind == OpKind::kSoftmaxStatsAndGrad ||
                         op->kind == OpKind::kRouterLoss;
    const bool reached = std::any_of(op->outputs.begin(), op->outputs.end(),
                                     [&](ValueId output) { return context.HasGradient(output); });
    if ((!is_loss && !reached) || !context.AnyNeedsGradient(op->inputs)) continue;
    if (rules.differentiate == nullptr) return Internal("{} has no derivative", Name(op->kind));
    context.row_chunk_ = op->row_chunk;
    TROUPE_RETURN_IF_ERROR(rules.differentiate(*op, context));
  }
  if (chunk.input != kNoValue && of_input) {
    chunk.input_gradient = context.GradientOf(chunk.input);
    if (chunk.input_gradient == kNoValue)
      return Internal("chunk {} has no gradient of its input", chunk.chunk);
  }
  return OkStatus();
}

}  // namespace troupe::model
