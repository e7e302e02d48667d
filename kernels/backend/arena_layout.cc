#include "kernels/backend/arena_layout.h"

namespace troupe::kernels {
namespace {

constexpr int64_t kPage = 4096;

}  // namespace

ArenaLayout::ArenaLayout(const model::MemoryPlan& plan) : plan_(plan) {
  bytes_ = RoundUp(plan.persistent_bytes, kPage);
  for (size_t chunk = 0; chunk < plan.saved_bytes.size(); ++chunk) {
    saved_offsets_.push_back(bytes_);
    bytes_ += RoundUp(plan.saved_bytes[chunk], kPage) * plan.buffers[chunk];
  }
  temporary_offset_ = bytes_;
  bytes_ += RoundUp(plan.temporary_bytes, kPage);
}

int64_t ArenaLayout::OffsetOf(model::ValueId value, int buffer) const {
  const model::Location& location = plan_.locations[static_cast<size_t>(value)];
  switch (location.region) {
    case model::Region::kPersistent:
      return location.offset;
    case model::Region::kSaved: {
      const auto chunk = static_cast<size_t>(location.chunk_index);
      return saved_offsets_[chunk] + RoundUp(plan_.saved_bytes[chunk], kPage) * buffer +
             location.offset;
    }
    case model::Region::kTemporary:
      return temporary_offset_ + location.offset;
  }
  return location.offset;
}

}  // namespace troupe::kernels
