// The text of a segment, with the values that it takes and returns.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_SEGMENT_TEXT_H_
#define TROUPE_KERNELS_XLA_RUNTIME_SEGMENT_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "model/program/value.h"

namespace troupe::kernels::xla {

struct SegmentText {
  std::string module;
  std::vector<model::ValueId> arguments;  // roots, in the order of the arguments
  // Arguments from this one on are not read: they only give their memory to a result.
  size_t first_unread = 0;
  // The last argument is i32: 1 in a step's first microbatch, else 0.
  bool reads_first_microbatch = false;
  std::vector<model::ValueId> results;  // roots, in the order of the results
  // The argument whose memory each result takes over, which the run consumes; -1: none.
  std::vector<int> aliases;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_SEGMENT_TEXT_H_
