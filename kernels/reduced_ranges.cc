#include "kernels/reduced_ranges.h"

#include "kernels/arena_layout.h"

namespace troupe::kernels {
namespace {

constexpr int64_t kAlignment = 64;  // of values in the memory plan, bytes

}  // namespace

std::vector<ReducedRange> ReducedRangesOf(const model::Program& program, const model::Op& op,
                                          const std::function<char*(model::ValueId)>& address) {
  std::vector<ReducedRange> ranges;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const ReducedRange next = {address(op.inputs[i]), address(op.outputs[i]),
                               program.value(op.inputs[i]).bytes()};
    if (next.bytes == 0) continue;
    if (!ranges.empty()) {
      ReducedRange& last = ranges.back();
      const int64_t distance = next.input - last.input;
      if (next.output - last.output == distance && distance == RoundUp(last.bytes, kAlignment)) {
        last.bytes = distance + next.bytes;
        continue;
      }
    }
    ranges.push_back(next);
  }
  return ranges;
}

}  // namespace troupe::kernels
