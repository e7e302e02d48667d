#include "model/program/storage.h"

#include <numeric>

namespace troupe::model {

std::pair<ValueId, int64_t> StorageOf(const Program& program, ValueId id) {
  int64_t offset = 0;
  while (program.values[id].view_of != kNoValue) {
    const Value& view = program.values[id];
    offset += view.view_offset * SizeOf(view.dtype);
    id = view.view_of;
  }
  return {id, offset};
}

bool IsPersistent(const Value& root) {
  return root.chunk < 0 || root.role == Role::kParameter || root.role == Role::kComputeCopy ||
         root.role == Role::kGradient || root.role == Role::kOptimizerState;
}

std::vector<ValueId> StorageRoots(const Program& program) {
  std::vector<ValueId> roots;
  roots.reserve(program.values.size());
  for (const Value& value : program.values) roots.push_back(StorageRoot(program, value.id));
  return roots;
}

std::vector<StorageRange> StorageRanges(const Program& program) {
  std::vector<StorageRange> ranges;
  ranges.reserve(program.values.size());
  for (const Value& value : program.values) {
    const auto [root, begin] = StorageOf(program, value.id);
    ranges.push_back({root, begin, begin + value.bytes()});
  }
  return ranges;
}

int64_t BucketAlignment(const Program& program) {
  constexpr int64_t kCacheLine = 64;
  return std::lcm(kCacheLine, program.bucket.alignment * SizeOf(DType::kFloat32));
}

int64_t PaddedBucketBytes(const Program& program, int64_t bytes) {
  const int64_t unit = program.bucket.padding * SizeOf(DType::kFloat32);
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace troupe::model
