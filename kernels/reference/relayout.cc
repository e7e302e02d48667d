#include "kernels/exchange/row_relayout.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status Relayout(const Operation& operation) {
  const RowRelayout relayout(operation.program, operation.op, sizeof(double));
  std::vector<double> working(2 * static_cast<size_t>(operation.Input(0).elements()));
  auto* const send = reinterpret_cast<char*>(working.data());
  return relayout.Run(reinterpret_cast<const char*>(operation.inputs[0]),
                      reinterpret_cast<char*>(operation.outputs[0]), send, send + relayout.bytes(),
                      operation.communicator);
}

}  // namespace troupe::kernels::reference
