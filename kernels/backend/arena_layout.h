// The offsets of a memory plan's regions in one arena, each at a multiple of a page: persistent
// values, the saved region of each buffer of each chunk, temporary values. The backend's own
// working memory follows. Pure.
#ifndef TROUPE_KERNELS_BACKEND_ARENA_LAYOUT_H_
#define TROUPE_KERNELS_BACKEND_ARENA_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "model/program/memory_plan.h"

namespace troupe::kernels {

inline int64_t RoundUp(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

class ArenaLayout {
 public:
  // `plan` must outlive this object.
  explicit ArenaLayout(const model::MemoryPlan& plan);

  // The value's offset from the start of the arena, in bytes. REQUIRES: 0 <= buffer < the number of
  // buffers of the value's chunk in the plan.
  int64_t OffsetOf(model::ValueId value, int buffer) const;
  // Total bytes of all regions, which is also the offset of the backend's working memory.
  int64_t bytes() const { return bytes_; }

 private:
  const model::MemoryPlan& plan_;
  std::vector<int64_t> saved_offsets_;  // indexed by chunk
  int64_t temporary_offset_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_ARENA_LAYOUT_H_
