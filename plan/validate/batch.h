// Defines which samples a rank computes. The global batch of a step has slots [0,
// global_batch_size); data rank d owns a contiguous range of them, and its microbatches take the
// slots of this range in order. The slots are the same under every layout. Pure.
#ifndef TROUPE_PLAN_VALIDATE_BATCH_H_
#define TROUPE_PLAN_VALIDATE_BATCH_H_

#include <cstdint>

namespace troupe {

struct BatchGeometry {
  int64_t global_batch_size = 0;  // samples; a multiple of data_ranks × micro_batch_size
  int64_t micro_batch_size = 0;   // samples
  int64_t sequence_length = 0;    // tokens per sample
  int data_ranks = 1;

  int64_t slots_per_rank() const { return global_batch_size / data_ranks; }
  int microbatches() const { return static_cast<int>(slots_per_rank() / micro_batch_size); }
  // The first slot of a microbatch, which has micro_batch_size slots.
  int64_t FirstSlot(int data_rank, int microbatch) const {
    return data_rank * slots_per_rank() + microbatch * micro_batch_size;
  }
  int64_t tokens_per_microbatch() const { return micro_batch_size * sequence_length; }
  int64_t tokens_per_step() const { return global_batch_size * sequence_length; }
};

}  // namespace troupe

#endif  // TROUPE_PLAN_VALIDATE_BATCH_H_
