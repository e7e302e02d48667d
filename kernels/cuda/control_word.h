// The control word (model/program/control_word.h) reduced on a device, once the words of all ranks are there.
#ifndef TROUPE_KERNELS_CUDA_CONTROL_WORD_H_
#define TROUPE_KERNELS_CUDA_CONTROL_WORD_H_

#include "kernels/cuda/launch.h"

namespace troupe::kernels::cuda {

// control = the words of all ranks, each lane reduced in its own way, in the order of ranks: every rank has the same bits.
// words: d[ranks][kControlLanes]; control: d[kControlLanes].
KernelLaunch CombineControlWords(const double* words, int ranks, double* control);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_CONTROL_WORD_H_
