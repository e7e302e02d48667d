#include "kernels/control_word.h"

#include "kernels/reference/operation.h"
#include "kernels/update_decision.h"

namespace troupe::kernels::reference {

void ControlTotals(const Operation& operation) {
  AddTotals(operation.attributes<model::ControlAttributes>().rank, operation.inputs[1],
            operation.inputs[0]);
}

Status ControlReduce(const Operation& operation) {
  return ReduceControlWord(operation.communicator, operation.inputs[0]);
}

}  // namespace troupe::kernels::reference
