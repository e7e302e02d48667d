// For how long the compute stream waits for transfers, by what they are for: a mark before and one
// after each wait (kernels/cuda/mark.h), in graphs too. A wait for what is over already counts some
// microseconds, the time between the two marks' launches.
//
// Thread-safety: that of the device.
#ifndef TROUPE_KERNELS_CUDA_STALLS_H_
#define TROUPE_KERNELS_CUDA_STALLS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "kernels/backend.h"
#include "kernels/cuda/command.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/mark.h"

namespace troupe::kernels::cuda {

class Stalls {
 public:
  // The kind of a wait: that of a purpose, or kReceives for what a neighbouring stage sends.
  static int Of(Purpose purpose) { return static_cast<int>(purpose); }
  static constexpr int kReceives = kPurposes;

  // `device` outlives this, and this what is on its streams.
  explicit Stalls(Device& device) : device_(device) {}

  // Before the others.
  Status Prepare();

  // The commands of a wait of the compute stream for `event`.
  void AddWait(Commands* commands, int kind, Event event) const;
  // The same wait, enqueued.
  Status Wait(int kind, Event event) const;

  // Device memory with the counts; DecodeStalls reads a copy of it.
  const char* address() const { return words_.get(); }
  static constexpr int64_t kBytes = (kPurposes + 1) * int64_t{sizeof(MarkWords)};

 private:
  MarkWords* WordsOf(int kind) const { return reinterpret_cast<MarkWords*>(words_.get()) + kind; }

  Device& device_;
  DeviceMemory words_;
};

// REQUIRES: Stalls::kBytes of them.
DeviceStalls DecodeStalls(std::span<const std::byte> bytes);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_STALLS_H_
