// The memory ranges that a bucket's kAllReduce sums.
#ifndef TROUPE_KERNELS_BACKEND_REDUCED_RANGES_H_
#define TROUPE_KERNELS_BACKEND_REDUCED_RANGES_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "model/program/program.h"

namespace troupe::kernels {

struct ReducedRange {
  char* input;
  char* output;  // equal to input if in place
  int64_t bytes;
};

// Merges members of a bucket that are adjacent in memory into one range, including the zeros
// between them and the padding after the last. Pure.
std::vector<ReducedRange> ReducedRangesOf(const model::Program& program, const model::Op& op,
                                          const std::function<char*(model::ValueId)>& address);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_REDUCED_RANGES_H_
