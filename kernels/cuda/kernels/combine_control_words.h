// Reduction of the control word (model/program/control_word.h) on a device, after the words of all
// ranks have arrived.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_COMBINE_CONTROL_WORDS_H_
#define TROUPE_KERNELS_CUDA_KERNELS_COMBINE_CONTROL_WORDS_H_

#include "kernels/cuda/device_code/launch.h"

namespace troupe::kernels::cuda {

// Reduces the words of all ranks into `control`, each lane with its own operator, in rank order, so
// that every rank gets the same bits. words: d[ranks][kControlLanes]; control: d[kControlLanes].
KernelLaunch CombineControlWords(const double* words, int ranks, double* control);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_COMBINE_CONTROL_WORDS_H_
