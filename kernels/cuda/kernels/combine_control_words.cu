// One thread per lane.
#include "kernels/cuda/kernels/combine_control_words.h"

#include "kernels/cuda/device_code/simt.h"
#include "model/program/control_word.h"

namespace troupe::kernels::cuda {
namespace {

struct ControlWordArgs {
  const double* words;
  double* control;
  int ranks;
};

TROUPE_KERNEL void CombineControlWordsKernel(ControlWordArgs args) {
  const int lane = Lane();
  if (lane >= model::kControlLanes) return;
  double value = args.words[lane];
  for (int rank = 1; rank < args.ranks; ++rank) {
    const double other = args.words[rank * model::kControlLanes + lane];
    if (lane <= model::kLastSum) {
      value += other;
    } else if (lane <= model::kLastMax) {
      value = value < other ? other : value;
    } else {
      value = other < value ? other : value;
    }
  }
  args.control[lane] = value;
}

static_assert(model::kControlLanes <= kWarp);

}  // namespace

KernelLaunch CombineControlWords(const double* words, int ranks, double* control) {
  return MakeLaunch("combine_control_words", &CombineControlWordsKernel, {.threads = kWarp},
                    ControlWordArgs{words, control, ranks});
}

}  // namespace troupe::kernels::cuda
