#include "model/program/verify_update.h"

#include <vector>

#include "model/program/counted_in_norm.h"
#include "model/program/storage.h"

namespace troupe::model {

Status CheckOptimizer(const Program& program) {
  int control_reduces = 0, control_halts = 0, adamws = 0;
  std::vector<ValueId> counted, updated;
  for (const Op& op : program.update) {
    if (op.kind == OpKind::kControlReduce) ++control_reduces;
    if (op.kind == OpKind::kControlHalt && adamws > 0)
      return Internal("update: control_halt runs after adamw");
    control_halts += op.kind == OpKind::kControlHalt ? 1 : 0;
    if (op.kind == OpKind::kSumOfSquares) counted.assign(op.inputs.begin() + 1, op.inputs.end());
    if (op.kind == OpKind::kSumOfSquares && control_reduces > 0) {
      return Internal("update: sum_of_squares runs after control_reduce");
    }
    if (op.kind == OpKind::kAdamW) {
      ++adamws;
      if (op.inputs.size() < 3 || op.inputs[2] != program.applied_steps) {
        return Internal("update: adamw does not count the steps that it applies");
      }
      updated.assign(op.inputs.begin() + 3, op.inputs.end());
    }
  }
  if (control_reduces != 1 || adamws != 1) {
    return Internal("update: {} control_reduce and {} adamw, must be one of each", control_reduces,
                    adamws);
  }
  if (control_halts != (program.halted == kNoValue ? 0 : 1)) {
    return Internal("update: {} control_halt, but {} value for it", control_halts,
                    program.halted == kNoValue ? "no" : "a");
  }
  if (updated.size() != program.parameters.size()) {
    return Internal("update: adamw has {} gradients for {} parameters", updated.size(),
                    program.parameters.size());
  }
  size_t next_counted = 0;
  for (size_t p = 0; p < program.parameters.size(); ++p) {
    const ParameterEntry& entry = program.parameters[p];
    const Value& master = program.value(entry.value);
    const Value& gradient = program.value(updated[p]);
    if (gradient.placement != master.placement) {
      return Internal(
          "update: adamw: the gradient of {} reaches the optimizer {}, but the parameter is {}",
          master.name, ToText(gradient.placement), ToText(master.placement));
    }
    if (StorageRoot(program, updated[p]) != StorageRoot(program, entry.gradient)) {
      return Internal("update: adamw: gradient {} of {} is not an output of backward",
                      gradient.name, master.name);
    }
    const bool due = CountedInNorm(program, entry);
    const bool is = next_counted < counted.size() && counted[next_counted] == updated[p];
    if (is) ++next_counted;
    if (is != due || entry.counted_in_norm != due) {
      return Internal("update: sum_of_squares: {} is {}counted on this rank, but {} on {}",
                      master.name, is ? "" : "not ", due ? "it must be" : "another rank counts it",
                      ToText(master.placement));
    }
  }
  if (next_counted != counted.size())
    return Internal("update: sum_of_squares counts a gradient twice");
  return OkStatus();
}

Status CheckOwners(const Program& program) {
  for (const ParameterEntry& entry : program.parameters) {
    int sums = 0;
    for (size_t c = 0; c < program.chunks.size(); ++c) {
      for (const Op& op : program.Ops(static_cast<int>(c), Piece::kReduce)) {
        if (op.kind != OpKind::kAllReduce ||
            CollectiveOf(op).group.kind != CollectiveGroup::Kind::kOwners) {
          continue;
        }
        for (const ValueId output : op.outputs) {
          if (StorageRoot(program, output) == StorageRoot(program, entry.gradient)) ++sums;
        }
      }
    }
    if (sums != (entry.tied ? 1 : 0)) {
      return Internal("reduce: the gradient of {}, {}, is summed over its owners {} times",
                      program.value(entry.value).name, entry.tied ? "tied" : "not tied", sums);
    }
  }
  return OkStatus();
}

}  // namespace troupe::model
