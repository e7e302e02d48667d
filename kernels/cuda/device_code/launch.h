// A kernel launch as data: everything a device needs to run a kernel.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_CODE_LAUNCH_H_
#define TROUPE_KERNELS_CUDA_DEVICE_CODE_LAUNCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace troupe::kernels::cuda {

struct LaunchShape {
  unsigned blocks_x = 1, blocks_y = 1;  // x below 2^31; y at most 65,535
  unsigned threads = 1;                 // per block, at most 1,024
  size_t shared_bytes = 0;              // in addition to what the kernel declares
};

inline constexpr size_t kArgumentBytes = 256;

struct KernelLaunch {
  const char* name = "";  // for reports
  LaunchShape shape;
  const void* kernel = nullptr;  // handle for the CUDA runtime; under emulation a plain function
  // Runs one thread of `kernel` on the host.
  void (*run_thread)(const void* kernel, const void* arguments) = nullptr;
  alignas(16) std::array<std::byte, kArgumentBytes> arguments{};
};

template <typename Args>
KernelLaunch MakeLaunch(const char* name, void (*kernel)(Args), const LaunchShape& shape,
                        const Args& args) {
  static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= kArgumentBytes);
  KernelLaunch launch;
  launch.name = name;
  launch.shape = shape;
  launch.kernel = reinterpret_cast<const void*>(kernel);
#ifndef __CUDACC__
  launch.run_thread = [](const void* function, const void* arguments) {
    reinterpret_cast<void (*)(Args)>(const_cast<void*>(function))(
        *static_cast<const Args*>(arguments));
  };
#endif
  ::new (launch.arguments.data()) Args(args);
  return launch;
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_CODE_LAUNCH_H_
