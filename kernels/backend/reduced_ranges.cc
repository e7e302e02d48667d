#include "kernels/backend/reduced_ranges.h"

#include "kernels/backend/arena_layout.h"
#include "model/program/storage.h"

namespace troupe::kernels {
namespace {

// Whether `op` reduces a bucket from its first to its last gradient; such a bucket ends with
// padding.
bool IsWholeBucket(const model::Program& program, const model::Op& op) {
  const auto* const attributes = std::get_if<model::AllReduceAttributes>(&op.attributes);
  if (attributes == nullptr || !attributes->of_bucket) return false;
  bool begins = false, ends = false;
  for (const model::ParameterEntry& entry : program.parameters) {
    begins |= entry.begins_bucket && entry.gradient == op.inputs.front();
    ends |= entry.ends_bucket && entry.gradient == op.inputs.back();
  }
  return begins && ends;
}

}  // namespace

std::vector<ReducedRange> ReducedRangesOf(const model::Program& program, const model::Op& op,
                                          const std::function<char*(model::ValueId)>& address) {
  const int64_t alignment = model::BucketAlignment(program);
  std::vector<ReducedRange> ranges;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const ReducedRange next = {address(op.inputs[i]), address(op.outputs[i]),
                               program.value(op.inputs[i]).bytes()};
    if (next.bytes == 0) continue;
    if (!ranges.empty()) {
      ReducedRange& last = ranges.back();
      const int64_t distance = next.input - last.input;
      if (next.output - last.output == distance && distance == RoundUp(last.bytes, alignment)) {
        last.bytes = distance + next.bytes;
        continue;
      }
    }
    ranges.push_back(next);
  }
  if (ranges.size() == 1 && ranges[0].input == ranges[0].output && IsWholeBucket(program, op)) {
    ranges[0].bytes = model::PaddedBucketBytes(program, ranges[0].bytes);
  }
  return ranges;
}

}  // namespace troupe::kernels
