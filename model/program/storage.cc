#include "model/program/storage.h"

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

}  // namespace troupe::model
