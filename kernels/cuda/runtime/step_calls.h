// The calls of one part of a step (kernels/backend/executable.h, StepPart) to an executable, as
// recorded the first time, and offsets for the bytes that they write, which differ from step to
// step.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_STEP_CALLS_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_STEP_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/backend/executable.h"

namespace troupe::kernels::cuda {

struct StepCall {
  enum class Kind : uint8_t {
    kRun,
    kRunUpdate,
    kWrite,
    kCopy,
    kSend,
    kWaitSend,
    kPostReceive,
    kReceive
  } kind;
  int chunk_index = 0;
  model::Piece piece = model::Piece::kForward;
  int buffer = 0;
  RunOptions options;
  model::ValueId value = model::kNoValue;  // written, copied to, sent or received
  model::ValueId from = model::kNoValue;   // source of a copy
  int from_buffer = 0;
  Communicator* link = nullptr;  // link of a send or receive
  int64_t offset = 0;            // within the part's bytes
  int64_t bytes = 0;

  bool operator==(const StepCall& other) const;
};

class StepCalls {
 public:
  // Starts a repetition of the calls, from the first one on.
  void Restart() { next_ = 0; }
  // Records the next call, or checks that it repeats the recorded one. Returns the offset of its
  // bytes within the part's bytes. Errors: INTERNAL if the call differs from the recorded one.
  StatusOr<int64_t> Record(StepCall call);
  // Ends the recording; from now on calls must repeat. Errors: INTERNAL if calls are missing.
  Status Close();

  bool is_closed() const { return is_closed_; }
  const std::vector<StepCall>& calls() const { return calls_; }
  // Total bytes of all writes, each at a multiple of 64.
  int64_t bytes() const { return bytes_; }

 private:
  std::vector<StepCall> calls_;
  size_t next_ = 0;
  int64_t bytes_ = 0;
  bool is_closed_ = false;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_STEP_CALLS_H_
