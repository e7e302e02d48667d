// The measurement is written before the count that announces it.
#include "kernels/cuda/kernels/mark.h"

#include "kernels/cuda/device_code/simt.h"

namespace troupe::kernels::cuda {
namespace {

struct MarkArgs {
  volatile MarkWords* words;
};

TROUPE_KERNEL void BeginMarkKernel(MarkArgs args) {
  args.words->began_nanoseconds = DeviceNanoseconds();
  SyncWithHost();
  args.words->begun = args.words->begun + 1;
}

TROUPE_KERNEL void EndMarkKernel(MarkArgs args) {
  args.words->nanoseconds =
      args.words->nanoseconds + (DeviceNanoseconds() - args.words->began_nanoseconds);
  SyncWithHost();
  args.words->over = args.words->over + 1;
}

}  // namespace

KernelLaunch BeginMark(MarkWords* words) {
  return MakeLaunch("begin_mark", &BeginMarkKernel, {}, MarkArgs{words});
}
KernelLaunch EndMark(MarkWords* words) {
  return MakeLaunch("end_mark", &EndMarkKernel, {}, MarkArgs{words});
}

}  // namespace troupe::kernels::cuda
