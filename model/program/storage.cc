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

}  // namespace troupe::model
