// A device without streams, for tests.
#ifndef TROUPE_COLLECTIVE_NCCL_TESTING_TEST_DEVICE_H_
#define TROUPE_COLLECTIVE_NCCL_TESTING_TEST_DEVICE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collective/nccl/nccl_device.h"

namespace troupe {

// A device that completes enqueued work at once, except for operations that a test lets hang. Each
// operation takes half a second.
class TestDevice : public NcclDevice {
 public:
  Status Use() override { return OkStatus(); }
  void* NativeStream(DeviceStream) override { return nullptr; }
  StatusOr<int> MakeMark() override { return made_++; }
  Status Begin(int mark, DeviceStream) override {
    ++marks_[static_cast<size_t>(mark)].begun;
    return OkStatus();
  }
  Status End(int mark, DeviceStream) override {
    if (!hangs) ++marks_[static_cast<size_t>(mark)].over;
    return OkStatus();
  }
  Progress Read(int mark) const override {
    const Mark& read = marks_[static_cast<size_t>(mark)];
    const uint64_t over = read.over;
    return {.begun = read.begun, .over = over, .seconds = 0.5 * static_cast<double>(over)};
  }

  std::atomic<bool> hangs = false;

 private:
  struct Mark {
    std::atomic<uint64_t> begun = 0, over = 0;
  };
  std::array<Mark, 64> marks_;
  int made_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NCCL_TESTING_TEST_DEVICE_H_
