#include "kernels/cuda/runtime/cuda_delayed_read.h"

#include <utility>

#include "kernels/backend/arena_layout.h"

namespace troupe::kernels::cuda {

CudaDelayedRead::CudaDelayedRead(Device& device, std::vector<Source> sources)
    : device_(device), sources_(std::move(sources)), offsets_{0} {
  for (const Source& source : sources_) {
    offsets_.push_back(offsets_.back() + RoundUp(source.bytes, 64));
  }
}

StatusOr<std::unique_ptr<DelayedRead>> CudaDelayedRead::Make(Device& device, const Stalls& stalls,
                                                             std::vector<Source> sources) {
  sources.push_back({stalls.address(), Stalls::kBytes});
  std::unique_ptr<CudaDelayedRead> made(new CudaDelayedRead(device, std::move(sources)));
  TROUPE_ASSIGN_OR_RETURN(made->arrived_, device.MakeEvent());
  TROUPE_ASSIGN_OR_RETURN(made->pinned_, device.AllocatePinned(made->offsets_.back()));
  return std::unique_ptr<DelayedRead>(std::move(made));
}

Status CudaDelayedRead::Start() {
  for (size_t i = 0; i < sources_.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(device_.Copy(pinned_.get() + offsets_[i], sources_[i].address,
                                        sources_[i].bytes, Stream::kCompute));
  }
  return device_.Record(arrived_, Stream::kCompute);
}

std::span<const std::byte> CudaDelayedRead::bytes(size_t index) const {
  return std::as_bytes(
      std::span(pinned_.get() + offsets_[index], static_cast<size_t>(sources_[index].bytes)));
}

}  // namespace troupe::kernels::cuda
