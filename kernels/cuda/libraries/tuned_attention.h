// Uses a library for attention where it is faster than our own kernels. When a shape is prepared
// for the first time, both are timed, separately for forward and gradient, and the faster one is
// stored on disk next to the tuning cache of matmuls (tuning_cache_file.h):
//
//   forward bfloat16 samples=64 tokens=1024 queries=12 keys=12 width=64: library
//
// Without timing, or if memory does not suffice for it, the library computes everything that it
// can, and nothing is stored. If the library fails to run what it prepared, our own kernels compute
// it, and nothing is stored. Each choice between the two is logged.
#ifndef TROUPE_KERNELS_CUDA_LIBRARIES_TUNED_ATTENTION_H_
#define TROUPE_KERNELS_CUDA_LIBRARIES_TUNED_ATTENTION_H_

#include <memory>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "kernels/cuda/libraries/tuning_cache_file.h"
#include "kernels/cuda/runtime/attention_library.h"

namespace troupe::kernels::cuda {

// Seconds of one run on the device.
struct AttentionSeconds {
  double library = 0;
  double own = 0;
};

class AttentionTiming {
 public:
  virtual ~AttentionTiming() = default;
  // Errors: RESOURCE_EXHAUSTED if operands and workspace do not fit into the free device memory.
  virtual StatusOr<AttentionSeconds> Time(const LibraryAttentionShape& shape,
                                          LibraryAttention& library) = 0;
  virtual StatusOr<AttentionSeconds> Time(const LibraryAttentionShape& shape,
                                          LibraryAttentionGrad& library) = 0;
};

// The entries of attention, whose value is "library" or "own".
TuningKind AttentionTuning();

struct TunedAttentionOptions {
  std::string tuning_cache_folder;  // empty: nothing is stored
  TuningOwner owner;
};

class TunedAttention : public AttentionLibrary {
 public:
  // The references must outlive this object; `timing` may be null.
  TunedAttention(AttentionLibrary& library, AttentionTiming* timing, FileSystem& files,
                 const TunedAttentionOptions& options);

  // Number of entries found in the file.
  int64_t tuning_cache_hits() const { return cache_hits_; }

  StatusOr<std::unique_ptr<LibraryAttention>> Prepare(const LibraryAttentionShape& shape) override;
  StatusOr<std::unique_ptr<LibraryAttentionGrad>> PrepareGrad(
      const LibraryAttentionShape& shape) override;

 private:
  // Returns `prepared`, or null if our own kernels are faster.
  template <typename Args>
  StatusOr<std::unique_ptr<LibraryAttentionOf<Args>>> Choose(
      const std::string& pass, const LibraryAttentionShape& shape,
      std::unique_ptr<LibraryAttentionOf<Args>> prepared);

  AttentionLibrary& library_;
  AttentionTiming* const timing_;
  TuningCacheFile cache_;
  int64_t cache_hits_ = 0;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_LIBRARIES_TUNED_ATTENTION_H_
