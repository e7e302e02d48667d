// Runs the parts of a static partition on OpenMP threads. Results do not depend on which thread
// runs which part.
#ifndef TROUPE_KERNELS_CPU_PARALLEL_H_
#define TROUPE_KERNELS_CPU_PARALLEL_H_

#include <omp.h>

namespace troupe::kernels::cpu {

// Calls body(part) for each part in [0, parts); all calls have finished on return.
template <typename Body>
void Parallel(int parts, const Body& body) {
  if (parts == 1) {
    body(0);
    return;
  }
#pragma omp parallel num_threads(parts)
  for (int part = omp_get_thread_num(); part < parts; part += omp_get_num_threads()) body(part);
}

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_PARALLEL_H_
