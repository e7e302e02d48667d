// Runs ranks on emulated GPUs in place of worker/rank/cuda_backend.cc. A worker daemon linked with
// this file reports as many GPUs as requested, so that whole processes train with `devices: cuda`
// on a machine that has none.
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/emulated/emulated_backend.h"
#include "worker/rank/cuda_backend.h"

namespace troupe {

StatusOr<std::unique_ptr<kernels::Backend>> MakeCudaRankBackend(const RankBackendOptions&) {
  return std::make_unique<kernels::EmulatedBackend>();
}

StatusOr<std::vector<v1::Device>> ProbeCudaDevices(int count) {
  constexpr int64_t kMemoryBytes = int64_t{16} << 30;
  std::vector<v1::Device> devices;
  for (int i = 0; i < count; ++i) {
    v1::Device& device = devices.emplace_back();
    device.set_index(i);
    device.mutable_kind()->set_kind("cuda");
    device.mutable_kind()->set_model("emulated");
    device.mutable_kind()->set_kernel_level("emulated");
    device.mutable_kind()->set_versions("emulated");
    device.set_memory_bytes(kMemoryBytes);
  }
  return devices;
}

}  // namespace troupe

// The shared memory of emulated blocks is thread-local, 440 KB in total, and a thread's stack
// includes it: the 100 KB that the metrics server requests would leave no stack at all.
extern "C" int pthread_attr_setstacksize(pthread_attr_t* attributes, size_t bytes) noexcept {
  using Function = int (*)(pthread_attr_t*, size_t);
  static const auto kNext =
      reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_attr_setstacksize"));
  constexpr size_t kLeast = size_t{1} << 20;
  return kNext(attributes, std::max(bytes, kLeast));
}
