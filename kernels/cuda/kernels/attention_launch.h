// Launch parameters of attention kernels in addition to the operation's arguments.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_ATTENTION_LAUNCH_H_
#define TROUPE_KERNELS_CUDA_KERNELS_ATTENTION_LAUNCH_H_

#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "kernels/backend/arguments.h"
#include "kernels/cuda/device_code/shapes.h"

namespace troupe::kernels::cuda {

template <typename Args>
struct AttentionLaunch {
  Args args;
  float scale;   // 1 / sqrt(D)
  bool packed;   // start and width of a head's rows are multiples of sixteen bytes
  float* delta;  // f[R,Q], for a gradient
};

template <typename T, typename Args>
AttentionLaunch<Args> LaunchOf(const Args& args, std::initializer_list<const void*> addresses,
                               float* delta = nullptr) {
  const auto of_sixteen_bytes = [](int64_t elements) {
    return elements * static_cast<int64_t>(sizeof(T)) % 16 == 0;
  };
  return {args, 1.0f / std::sqrt(static_cast<float>(args.rows.head_dim)),
          of_sixteen_bytes(args.q_stride) && of_sixteen_bytes(args.kv_stride) &&
              of_sixteen_bytes(args.rows.head_dim) &&
              std::ranges::all_of(addresses,
                                  [](const void* address) {
                                    return reinterpret_cast<uintptr_t>(address) % 16 == 0;
                                  }),
          delta};
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_ATTENTION_LAUNCH_H_
