#include "kernels/cuda/runtime/noise.h"

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "kernels/numerics/bfloat16.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int64_t kNoiseBytes = 4 << 20;

// Uniform in [-1, 1).
float Number(uint64_t index) {
  return static_cast<float>(static_cast<double>(UniformBits(1, index) >> 11) * 0x1.0p-52 - 1.0);
}

}  // namespace

Status FillWithNoise(Device& device, char* memory, int64_t bytes, bool bfloat16) {
  TROUPE_ASSIGN_OR_RETURN(const DeviceMemory noise, device.AllocatePinned(kNoiseBytes));
  TROUPE_ASSIGN_OR_RETURN(const Event over, device.MakeEvent());
  const int64_t element = bfloat16 ? 2 : 4;
  for (int64_t i = 0; i < kNoiseBytes / element; ++i) {
    const float number = Number(static_cast<uint64_t>(i));
    const BFloat16 rounded = ToBFloat16(number);
    std::memcpy(noise.get() + i * element, bfloat16 ? static_cast<const void*>(&rounded) : &number,
                static_cast<size_t>(element));
  }
  for (int64_t done = 0; done < bytes; done += kNoiseBytes) {
    TROUPE_RETURN_IF_ERROR(device.Copy(memory + done, noise.get(),
                                       std::min(kNoiseBytes, bytes - done), Stream::kCompute));
  }
  TROUPE_RETURN_IF_ERROR(device.Record(over, Stream::kCompute));
  return device.Finish(over);
}

}  // namespace troupe::kernels::cuda
