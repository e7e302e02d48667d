// Gathers the routed rows of all ranks of the group to each rank, and reduce-scatters their sum
// back to the ranks.
#include <algorithm>
#include <vector>

#include "kernels/backend/op_sequence.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {
namespace {

// Elements of each rank's rows, by the counts of input 1.
std::vector<size_t> NumbersByRank(const Operation& operation) {
  const int ranks = operation.communicator == nullptr ? 1 : operation.communicator->size();
  const int64_t counts = operation.Input(1).elements();
  std::vector<size_t> numbers(ranks, 0);
  for (int64_t c = 0; c < counts; ++c) {
    numbers[c / (counts / ranks)] += operation.Count(1, c) * operation.Extent(0, 1);
  }
  return numbers;
}

}  // namespace

Status GatherRouted(const Operation& operation) {
  const auto& attributes = operation.attributes<model::RoutedRowsAttributes>();
  std::vector<size_t> bytes = NumbersByRank(operation);
  if (operation.communicator == nullptr) {
    std::copy_n(operation.inputs[0], bytes[0], operation.outputs[0]);
    return OkStatus();
  }
  for (size_t& count : bytes) count *= sizeof(double);
  return operation.communicator->AllGather(operation.inputs[0], operation.outputs[0], bytes,
                                           attributes.purpose);
}

Status ScatterRouted(const Operation& operation) {
  const auto& attributes = operation.attributes<model::RoutedRowsAttributes>();
  const std::vector<size_t> numbers = NumbersByRank(operation);
  if (operation.communicator == nullptr) {
    std::copy_n(operation.inputs[0], numbers[0], operation.outputs[0]);
    return OkStatus();
  }
  std::vector<double> data(operation.inputs[0],
                           operation.inputs[0] + operation.Input(0).elements());
  return operation.communicator->ReduceScatter(data.data(), operation.outputs[0], numbers,
                                               SumFloat64(), attributes.purpose);
}

}  // namespace troupe::kernels::reference
