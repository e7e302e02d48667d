// Sends rows to each rank of the group, as many as its counts sum to. Without counts, the input is
// split into equal blocks.
#include <algorithm>

#include "kernels/backend/op_sequence.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status AllToAll(const Operation& operation) {
  const auto& attributes = operation.attributes<model::RoutedRowsAttributes>();
  const double* input = operation.inputs[0];
  double* output = operation.outputs[0];
  const bool counted = operation.inputs.size() > 1;
  const int64_t row = counted ? operation.Extent(0, 1) : 1;
  if (operation.communicator == nullptr) {
    const int64_t rows = counted ? operation.SumOfCounts(1) : operation.Extent(0, 0);
    if (input != output) std::copy_n(input, rows * row, output);
    return OkStatus();
  }
  const int ranks = operation.communicator->size();
  if (!counted) {
    return operation.communicator->AllToAll(
        input, output, operation.Extent(0, 0) / ranks * sizeof(double), attributes.purpose);
  }
  std::vector<size_t> bytes[2];
  for (int side = 0; side < 2; ++side) {
    bytes[side].assign(ranks, 0);
    const int64_t counts = operation.Input(1 + side).elements();
    for (int64_t c = 0; c < counts; ++c) {
      bytes[side][c / (counts / ranks)] += operation.Count(1 + side, c) * row * sizeof(double);
    }
  }
  return operation.communicator->AllToAll(input, output, bytes[0], bytes[1], attributes.purpose);
}

}  // namespace troupe::kernels::reference
