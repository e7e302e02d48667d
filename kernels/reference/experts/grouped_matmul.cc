// One matmul for the rows of each count; count c belongs to expert c mod L.
#include <algorithm>

#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {
namespace {

// Calls body(expert, first row, number of rows) for each count.
template <typename Body>
void EachGroup(const Operation& operation, const Body& body) {
  const int64_t experts = operation.attributes<model::GroupedAttributes>().local_experts;
  int64_t first = 0;
  for (int64_t c = 0; c < operation.Input(2).elements(); ++c) {
    body(c % experts, first, operation.Count(2, c));
    first += operation.Count(2, c);
  }
}

}  // namespace

Status GroupedMatmul(const Operation& operation) {
  const int64_t k_extent = operation.Extent(0, 1), n_extent = operation.Output(0).dims[1].local;
  EachGroup(operation, [&](int64_t expert, int64_t first, int64_t count) {
    for (int64_t r = first; r < first + count; ++r) {
      for (int64_t n = 0; n < n_extent; ++n) {
        const double* w = operation.inputs[1] + (expert * n_extent + n) * k_extent;
        double sum = 0;
        for (int64_t k = 0; k < k_extent; ++k) sum += operation.inputs[0][r * k_extent + k] * w[k];
        operation.outputs[0][r * n_extent + n] = sum;
      }
    }
  });
  return OkStatus();
}

Status GroupedMatmulGradInput(const Operation& operation) {
  const int64_t n_extent = operation.Extent(0, 1), k_extent = operation.Output(0).dims[1].local;
  EachGroup(operation, [&](int64_t expert, int64_t first, int64_t count) {
    for (int64_t r = first; r < first + count; ++r) {
      double* dx = operation.outputs[0] + r * k_extent;
      std::fill_n(dx, k_extent, 0.0);
      for (int64_t n = 0; n < n_extent; ++n) {
        const double* w = operation.inputs[1] + (expert * n_extent + n) * k_extent;
        const double dy = operation.inputs[0][r * n_extent + n];
        for (int64_t k = 0; k < k_extent; ++k) dx[k] += dy * w[k];
      }
    }
  });
  return OkStatus();
}

Status GroupedMatmulGradWeight(const Operation& operation) {
  const int64_t n_extent = operation.Extent(0, 1), k_extent = operation.Extent(1, 1);
  if (!operation.accumulate) {
    std::fill_n(operation.outputs[0], operation.Output(0).elements(), 0.0);
  }
  EachGroup(operation, [&](int64_t expert, int64_t first, int64_t count) {
    for (int64_t r = first; r < first + count; ++r) {
      for (int64_t n = 0; n < n_extent; ++n) {
        double* dw = operation.outputs[0] + (expert * n_extent + n) * k_extent;
        const double dy = operation.inputs[0][r * n_extent + n];
        for (int64_t k = 0; k < k_extent; ++k) dw[k] += dy * operation.inputs[1][r * k_extent + k];
      }
    }
  });
  return OkStatus();
}

}  // namespace troupe::kernels::reference
