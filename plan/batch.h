// Which samples a rank computes: a step's global batch has slots [0, global_batch_size); data rank d owns a contiguous
// run of them, and its microbatches follow in slot order. The same slots exist under every layout. Pure.
#ifndef TROUPE_PLAN_BATCH_H_
#define TROUPE_PLAN_BATCH_H_

#include <cstdint>

namespace troupe {

struct BatchGeometry {
  int64_t global_batch_size = 0;  // samples; data_ranks × micro_batch_size divides it
  int64_t micro_batch_size = 0;   // samples
  int64_t sequence_length = 0;    // tokens a sample
  int data_ranks = 1;

  int64_t slots_per_rank() const { return global_batch_size / data_ranks; }
  int microbatches() const { return static_cast<int>(slots_per_rank() / micro_batch_size); }
  // First slot of a microbatch; it has micro_batch_size slots.
  int64_t FirstSlot(int data_rank, int microbatch) const {
    return data_rank * slots_per_rank() + microbatch * micro_batch_size;
  }
  int64_t tokens_per_microbatch() const { return micro_batch_size * sequence_length; }
  int64_t tokens_per_step() const { return global_batch_size * sequence_length; }
};

}  // namespace troupe

#endif  // TROUPE_PLAN_BATCH_H_
