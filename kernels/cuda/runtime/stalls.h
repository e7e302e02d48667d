// Measures how long the compute stream waits for transfers, by purpose: a mark before and one after
// each wait (kernels/cuda/kernels/mark.h), also in graphs. A wait for a completed transfer still
// counts as some microseconds, the time between the launches of the two marks.
//
// Thread-safety: that of the device.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_STALLS_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_STALLS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "kernels/backend/delayed_read.h"
#include "kernels/cuda/kernels/mark.h"
#include "kernels/cuda/runtime/command.h"
#include "kernels/cuda/runtime/device.h"

namespace troupe::kernels::cuda {

class Stalls {
 public:
  // The kind of a wait: that of a purpose, or kReceives for data from an adjacent stage.
  static int Of(Purpose purpose) { return static_cast<int>(purpose); }
  static constexpr int kReceives = kPurposes;

  // `device` must outlive this object, and this object the work on the device's streams.
  explicit Stalls(Device& device) : device_(device) {}

  // Must be called before all other functions.
  Status Prepare();

  // Appends the commands by which the compute stream waits for `event`.
  void AddWait(Commands* commands, int kind, Event event) const;
  // Enqueues the same wait.
  Status Wait(int kind, Event event) const;

  // Device memory with the measurements; DecodeStalls reads a copy of it.
  const char* address() const { return words_.get(); }
  static constexpr int64_t kBytes = (kPurposes + 1) * int64_t{sizeof(MarkWords)};

 private:
  MarkWords* WordsOf(int kind) const { return reinterpret_cast<MarkWords*>(words_.get()) + kind; }

  Device& device_;
  DeviceMemory words_;
};

// REQUIRES: `bytes` has Stalls::kBytes.
DeviceStalls DecodeStalls(std::span<const std::byte> bytes);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_STALLS_H_
