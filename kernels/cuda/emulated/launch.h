// Runs a launch on the emulator.
#ifndef TROUPE_KERNELS_CUDA_EMULATED_LAUNCH_H_
#define TROUPE_KERNELS_CUDA_EMULATED_LAUNCH_H_

#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/emulator/emulator.h"

namespace troupe::kernels::cuda::emulator {

// Runs the whole launch before it returns.
inline void Launch(const KernelLaunch& launch) {
  RunBlocks({.blocks = {launch.shape.blocks_x, launch.shape.blocks_y},
             .threads = launch.shape.threads,
             .shared_bytes = launch.shape.shared_bytes},
            [&] { launch.run_thread(launch.kernel, launch.arguments.data()); });
}

}  // namespace troupe::kernels::cuda::emulator

#endif  // TROUPE_KERNELS_CUDA_EMULATED_LAUNCH_H_
