// Where the regions of a memory plan lie in one piece of memory, each at a multiple of a page: persistent values, the
// saved regions of every chunk's buffers, temporary values; the backend's own working memory follows. Pure.
#ifndef TROUPE_KERNELS_ARENA_LAYOUT_H_
#define TROUPE_KERNELS_ARENA_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "model/program/memory_plan.h"

namespace troupe::kernels {

inline int64_t RoundUp(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

class ArenaLayout {
 public:
  // `plan` outlives this.
  explicit ArenaLayout(const model::MemoryPlan& plan);

  // Bytes from the beginning. REQUIRES: 0 <= buffer < the plan's buffers of the value's chunk.
  int64_t OffsetOf(model::ValueId value, int buffer) const;
  // Bytes of all regions: where working memory begins.
  int64_t bytes() const { return bytes_; }

 private:
  const model::MemoryPlan& plan_;
  std::vector<int64_t> saved_offsets_;  // by chunk index
  int64_t temporary_offset_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_ARENA_LAYOUT_H_
