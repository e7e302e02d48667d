#include "kernels/cuda/runtime/device_marks.h"

#include <cstring>
#include <utility>

namespace troupe::kernels::cuda {
namespace {

constexpr int kMarksPerBlock = 256;

}  // namespace

StatusOr<int> DeviceMarks::Make() {
  const std::lock_guard lock(mutex_);
  if (made_ == 0) {
    TROUPE_RETURN_IF_ERROR(device_.Load(BeginMark(nullptr)));
    TROUPE_RETURN_IF_ERROR(device_.Load(EndMark(nullptr)));
  }
  if (made_ % kMarksPerBlock == 0) {
    constexpr int64_t kBytes = kMarksPerBlock * int64_t{sizeof(MarkWords)};
    TROUPE_ASSIGN_OR_RETURN(DeviceMemory block, device_.AllocatePinned(kBytes));
    std::memset(block.get(), 0, kBytes);
    blocks_.push_back(std::move(block));
  }
  return made_++;
}

MarkWords* DeviceMarks::Words(int mark) const {
  const std::lock_guard lock(mutex_);
  char* const block = blocks_[static_cast<size_t>(mark / kMarksPerBlock)].get();
  return reinterpret_cast<MarkWords*>(block) + mark % kMarksPerBlock;
}

DeviceMarks::Progress DeviceMarks::Read(int mark) const {
  const volatile MarkWords* const words = Words(mark);
  Progress progress;
  progress.over = words->over;
  progress.begun = words->begun;
  progress.seconds = 1e-9 * static_cast<double>(words->nanoseconds);
  return progress;
}

}  // namespace troupe::kernels::cuda
