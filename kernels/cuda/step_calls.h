// What one part of a step (kernels/backend.h, StepPart) asks of an executable: the calls as they came the first time, and
// room for the bytes that they write, which differ from step to step.
#ifndef TROUPE_KERNELS_CUDA_STEP_CALLS_H_
#define TROUPE_KERNELS_CUDA_STEP_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/backend.h"

namespace troupe::kernels::cuda {

struct StepCall {
  enum class Kind : uint8_t { kRun, kRunUpdate, kWrite, kCopy, kSend, kWaitSend, kPostReceive, kReceive } kind;
  int chunk_index = 0;
  model::Piece piece = model::Piece::kForward;
  int buffer = 0;
  RunOptions options;
  model::ValueId value = model::kNoValue;  // that is written, copied to, sent or received
  model::ValueId from = model::kNoValue;   // of a copy
  int from_buffer = 0;
  Communicator* edge = nullptr;            // of what is sent or received
  int64_t offset = 0;                      // in the part's bytes
  int64_t bytes = 0;

  bool operator==(const StepCall& other) const;
};

class StepCalls {
 public:
  // The calls come once more, from the first one on.
  void Restart() { next_ = 0; }
  // Takes the next call, of a write with its bytes. Returns where they go among the part's bytes. INTERNAL where it
  // is not the call that came in this place before.
  StatusOr<int64_t> Take(StepCall call);
  // INTERNAL where calls are missing. From now on calls must repeat.
  Status Close();

  bool is_closed() const { return is_closed_; }
  const std::vector<StepCall>& calls() const { return calls_; }
  // Of all writes, each at a multiple of 64.
  int64_t bytes() const { return bytes_; }

 private:
  std::vector<StepCall> calls_;
  size_t next_ = 0;
  int64_t bytes_ = 0;
  bool is_closed_ = false;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_STEP_CALLS_H_
