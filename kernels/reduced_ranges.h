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

// Members of a bucket that lie one after the other are one range, padding (0) included. Pure.
std::vector<ReducedRange> ReducedRangesOf(const model::Program& program, const model::Op& op,
                                          const std::function<char*(model::ValueId)>& address);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_REDUCED_RANGES_H_
