#include "kernels/cuda/runtime/step_calls.h"

#include "kernels/backend/arena_layout.h"

namespace troupe::kernels::cuda {

bool StepCall::operator==(const StepCall& other) const {
  return kind == other.kind && chunk_index == other.chunk_index && piece == other.piece &&
         buffer == other.buffer && value == other.value && from == other.from &&
         from_buffer == other.from_buffer && link == other.link && bytes == other.bytes &&
         options.first_microbatch == other.options.first_microbatch &&
         options.last_microbatch == other.options.last_microbatch &&
         options.evaluate == other.options.evaluate && options.first_op == other.options.first_op &&
         options.end_op == other.options.end_op;
}

StatusOr<int64_t> StepCalls::Record(StepCall call) {
  if (!is_closed_) {
    call.offset = bytes_;
    bytes_ += RoundUp(call.bytes, 64);
    calls_.push_back(call);
    ++next_;
    return call.offset;
  }
  if (next_ == calls_.size() || !(calls_[next_] == call)) {
    return Internal("call {} of this part of a step differs from the one in the first step", next_);
  }
  return calls_[next_++].offset;
}

Status StepCalls::Close() {
  if (next_ != calls_.size()) {
    return Internal("this part of a step had {} calls, must have {}", next_, calls_.size());
  }
  is_closed_ = true;
  return OkStatus();
}

}  // namespace troupe::kernels::cuda
