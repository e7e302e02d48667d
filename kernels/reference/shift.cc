// Sends a value around the ring of a group's ranks.
#include <algorithm>

#include "kernels/backend/op_sequence.h"
#include "kernels/exchange/ring_shift.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status Shift(const Operation& operation) {
  const auto& attributes = operation.attributes<model::ShiftAttributes>();
  const auto elements = static_cast<size_t>(operation.Input(0).elements());
  Communicator* const communicator = operation.communicator;
  if (communicator == nullptr) {
    std::copy_n(operation.inputs[0], elements, operation.outputs[0]);
    return OkStatus();
  }
  const RingShift shift(communicator->size(), communicator->rank(), attributes.shift,
                        elements * sizeof(double));
  return communicator->AllToAll(operation.inputs[0], operation.outputs[0], shift.send_bytes,
                                shift.receive_bytes, attributes.purpose);
}

}  // namespace troupe::kernels::reference
