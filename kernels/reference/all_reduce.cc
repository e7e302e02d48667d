#include "kernels/backend/op_sequence.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {
namespace {

void CombineMax(const void*, void* accumulator, const void* other, size_t count) {
  double* a = static_cast<double*>(accumulator);
  const double* b = static_cast<const double*>(other);
  for (size_t i = 0; i < count; ++i) a[i] = b[i] > a[i] || b[i] != b[i] ? b[i] : a[i];
}

}  // namespace

Status AllReduce(const Operation& operation) {
  TROUPE_RETURN_IF_ERROR(Copy(operation));
  if (operation.communicator == nullptr) return OkStatus();
  const auto& attributes = operation.attributes<model::AllReduceAttributes>();
  const Reduction reduction = attributes.reduce == model::ReduceKind::kSum
                                  ? SumFloat64()
                                  : Reduction{&CombineMax, nullptr, sizeof(double), "max_float64"};
  for (size_t i = 0; i < operation.outputs.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(operation.communicator->AllReduce(
        operation.outputs[i], operation.Output(static_cast<int>(i)).elements(), reduction,
        attributes.purpose));
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
