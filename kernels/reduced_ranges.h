// The ranges of memory that a bucket's kAllReduce sums up.
#ifndef TROUPE_KERNELS_REDUCED_RANGES_H_
#define TROUPE_KERNELS_REDUCED_RANGES_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "model/program/program.h"

namespace troupe::kernels {

struct ReducedRange {
  char* input;
  char* output;  // == input: in place
  int64_t bytes;
};

// Members of a bucket that are one after the other in memory are one range, with the zeros between them,
// and those behind the last that pad the bucket. Pure.
std::vector<ReducedRange> ReducedRangesOf(const model::Program& program, const model::Op& op,
                                          const std::function<char*(model::ValueId)>& address);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_REDUCED_RANGES_H_
