#include "model/program/op_rules.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"

namespace troupe::model {

bool Computes(const Op& op) {
  return RulesOf(op.kind).model_flops != nullptr || op.kind == OpKind::kEmbeddingGrad;
}

int64_t BytesMoved(const Op& op, const Program& program) {
  if (op.kind == OpKind::kCopy || op.kind == OpKind::kWait) return 0;
  int64_t bytes = 0;
  for (const ValueId id : op.inputs) bytes += program.value(id).bytes();
  for (const ValueId id : op.outputs) bytes += program.value(id).bytes();
  if (!UpdatesParameters(op)) return bytes;
  // It reads and writes the master, which is listed twice if there is no copy, and the states.
  for (const UpdatedParameter& updated : UpdatedParameters(op)) {
    if (updated.has_copy()) bytes += program.value(updated.master).bytes();
    for (const ValueId state : updated.states) bytes += program.value(state).bytes();
  }
  return bytes;
}

bool UpdatesParameters(const Op& op) { return RulesOf(op.kind).kept_states != nullptr; }

std::vector<UpdatedParameter> UpdatedParameters(const Op& op) {
  const auto kept = static_cast<size_t>(RulesOf(op.kind).kept_states(op.attributes));
  std::vector<UpdatedParameter> updated;
  const auto begin = op.inputs.begin();
  for (size_t at = kUpdateScalars; at + 3 + kept <= op.inputs.size(); at += 3 + kept) {
    const auto states = begin + static_cast<std::ptrdiff_t>(at) + 3;
    updated.push_back({op.inputs[at],
                       op.inputs[at + 1],
                       op.inputs[at + 2],
                       {states, states + static_cast<std::ptrdiff_t>(kept)}});
  }
  return updated;
}

void AppendOperands(const ParameterEntry& entry, Op* op) {
  op->inputs.insert(op->inputs.end(), {entry.reduced_gradient, entry.value, entry.compute_copy});
  op->inputs.insert(op->inputs.end(), entry.optimizer_states.begin(), entry.optimizer_states.end());
}

const ParameterEntry& EntryOfMaster(const Program& program, ValueId master) {
  const auto entry = std::ranges::find(program.parameters, master, &ParameterEntry::value);
  TROUPE_CHECK(entry != program.parameters.end(), "no parameter has the master %{}", master);
  return *entry;
}

}  // namespace troupe::model
