// Reduction of the control word (model/program/control_word.h) in host memory.
#ifndef TROUPE_KERNELS_BACKEND_REDUCE_CONTROL_WORD_H_
#define TROUPE_KERNELS_BACKEND_REDUCE_CONTROL_WORD_H_

#include "base/status.h"
#include "collective/communicator.h"

namespace troupe::kernels {

// All-reduces `control`, each lane with its own operator. A null communicator stands for a group of
// one.
Status ReduceControlWord(Communicator* communicator, double* control);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_REDUCE_CONTROL_WORD_H_
