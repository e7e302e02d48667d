// The dot product of two vectors of float64.
#ifndef TROUPE_KERNELS_REFERENCE_DOT_H_
#define TROUPE_KERNELS_REFERENCE_DOT_H_

#include <cstdint>

namespace troupe::kernels::reference {

inline double Dot(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace troupe::kernels::reference

#endif  // TROUPE_KERNELS_REFERENCE_DOT_H_
