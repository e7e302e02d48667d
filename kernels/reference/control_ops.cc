#include "kernels/backend/reduce_control_word.h"

#include "kernels/backend/update_decision.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status ControlTotals(const Operation& operation) {
  AddTotals(operation.attributes<model::ControlAttributes>().rank, operation.inputs[1],
            operation.inputs[0]);
  return OkStatus();
}

Status ControlRouted(const Operation& operation) {
  for (size_t i = 1; i < operation.inputs.size(); ++i) {
    AddRouted(operation.inputs[i], operation.Extent(i, 0) - model::kRouterLanes,
              operation.inputs[0]);
  }
  return OkStatus();
}

Status ControlReduce(const Operation& operation) {
  return ReduceControlWord(operation.communicator, operation.inputs[0]);
}

Status ControlHalt(const Operation& operation) {
  Halt(operation.inputs[0], operation.inputs[1]);
  return OkStatus();
}

Status CountStep(const Operation& operation) {
  if (DecideUpdate(operation.inputs[0], 0).apply) *operation.inputs[1] += 1;
  return OkStatus();
}

}  // namespace troupe::kernels::reference
