// One thread each: what comes after a mark on the stream finds it written.
#include "kernels/cuda/mark.h"

#include "kernels/cuda/simt.h"

namespace troupe::kernels::cuda {
namespace {

struct MarkArgs {
  Mark* mark;
};

TROUPE_KERNEL void BeginMarkKernel(MarkArgs args) {
  args.mark->begin_ns = Nanoseconds();
  args.mark->begun += 1;
}

// The times before the count: whoever sees the count sees them.
TROUPE_KERNEL void EndMarkKernel(MarkArgs args) {
  args.mark->total_ns += Nanoseconds() - args.mark->begin_ns;
  FenceSystem();
  args.mark->over += 1;
}

}  // namespace

KernelLaunch BeginMark(Mark* mark) {
  return MakeLaunch("begin_mark", &BeginMarkKernel, {}, MarkArgs{mark});
}

KernelLaunch EndMark(Mark* mark) {
  return MakeLaunch("end_mark", &EndMarkKernel, {}, MarkArgs{mark});
}

}  // namespace troupe::kernels::cuda
