#include "model/program/verify_update.h"

#include <map>
#include <utility>
#include <vector>

#include "model/program/op_rules.h"
#include "model/program/shared_heads.h"
#include "model/program/storage.h"

namespace troupe::model {

namespace {

// The gradient with which each trained parameter of the program is updated, in order. Each must be
// updated by exactly one optimizer, which changes the parameter's own copy and states.
StatusOr<std::vector<ValueId>> UpdatingGradients(const Program& program) {
  std::map<ValueId, UpdatedParameter> by_master;
  for (const Op& op : program.update) {
    if (!UpdatesParameters(op)) continue;
    for (UpdatedParameter& updated : UpdatedParameters(op)) {
      const ValueId master = updated.master;
      if (by_master.emplace(master, std::move(updated)).second) continue;
      return Internal("update: {} is updated twice", program.value(master).name);
    }
  }
  std::vector<ValueId> gradients;
  for (const ParameterEntry& entry : program.parameters) {
    if (!entry.trained()) continue;
    const auto updated = by_master.extract(entry.value);
    if (updated.empty())
      return Internal("update: no optimizer updates {}", program.value(entry.value).name);
    const UpdatedParameter& operands = updated.mapped();
    if (operands.compute_copy != entry.compute_copy || operands.states != entry.optimizer_states) {
      return Internal("update: the optimizer of {} has the copy or the states of another parameter",
                      program.value(entry.value).name);
    }
    gradients.push_back(operands.gradient);
  }
  if (by_master.empty()) return gradients;
  return Internal("update: {} is updated, but is no trained parameter",
                  program.value(by_master.begin()->first).name);
}

// The operations on the control word come in this order: sums of squares, one control_reduce, a
// control_halt if the program halts, one count_step, then the optimizers.
Status CheckOrder(const Program& program) {
  int control_reduces = 0, control_halts = 0, count_steps = 0, optimizers = 0;
  for (const Op& op : program.update) {
    if (op.kind == OpKind::kSumOfSquares && control_reduces > 0)
      return Internal("update: sum_of_squares runs after control_reduce");
    if (op.kind == OpKind::kControlHalt && count_steps > 0)
      return Internal("update: control_halt runs after count_step");
    if (UpdatesParameters(op) && count_steps == 0)
      return Internal("update: {} runs before count_step", Name(op.kind));
    if (UpdatesParameters(op) && op.inputs[2] != program.applied_steps)
      return Internal("update: {} does not read the number of applied steps", Name(op.kind));
    if (op.kind == OpKind::kCountStep && op.inputs[1] != program.applied_steps)
      return Internal("update: count_step does not count the steps that are applied");
    control_reduces += op.kind == OpKind::kControlReduce ? 1 : 0;
    control_halts += op.kind == OpKind::kControlHalt ? 1 : 0;
    count_steps += op.kind == OpKind::kCountStep ? 1 : 0;
    optimizers += UpdatesParameters(op) ? 1 : 0;
  }
  if (control_reduces != 1 || count_steps != 1 || optimizers == 0) {
    return Internal(
        "update: {} control_reduce, {} count_step and {} optimizers, must be one, one and some",
        control_reduces, count_steps, optimizers);
  }
  if (control_halts != (program.halted == kNoValue ? 0 : 1)) {
    return Internal("update: {} control_halt, but {} value for it", control_halts,
                    program.halted == kNoValue ? "no" : "a");
  }
  return OkStatus();
}

}  // namespace

bool CountedInNorm(const Program& program, const ParameterEntry& entry) {
  if (!entry.trained()) return false;
  const Value& master = program.value(entry.value);
  for (int a = 1; a < kNumAxes; ++a) {
    const AxisPlacement& placement = master.placement.axes[a];
    const int coordinate = program.mesh.coordinates.of[a];
    if (placement == Replicated() && coordinate != 0) return false;
    if (IsSharedHeads(placement) && coordinate % placement.run != 0) return false;
  }
  return !entry.tied || program.mesh.coordinates[Axis::kPipe] == 0;
}

Status CheckOptimizer(const Program& program) {
  TROUPE_RETURN_IF_ERROR(CheckOrder(program));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<ValueId> updated, UpdatingGradients(program));
  std::vector<ValueId> counted;
  for (const Op& op : program.update) {
    if (op.kind == OpKind::kSumOfSquares) counted.assign(op.inputs.begin() + 1, op.inputs.end());
  }
  size_t next_counted = 0;
  auto next_updated = updated.begin();
  for (const ParameterEntry& entry : program.parameters) {
    if (!entry.trained()) continue;
    const Value& master = program.value(entry.value);
    const Value& gradient = program.value(*next_updated++);
    if (gradient.placement != master.placement) {
      return Internal(
          "update: the gradient of {} reaches the optimizer {}, but the parameter is {}",
          master.name, ToText(gradient.placement), ToText(master.placement));
    }
    if (StorageRoot(program, gradient.id) != StorageRoot(program, entry.gradient)) {
      return Internal("update: gradient {} of {} is not an output of backward", gradient.name,
                      master.name);
    }
    const bool due = CountedInNorm(program, entry);
    const bool is = next_counted < counted.size() && counted[next_counted] == gradient.id;
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
    if (!entry.trained()) continue;
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
