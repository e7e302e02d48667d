// How the control word (model/program/control_word.h) is reduced where it is in the host's memory.
#ifndef TROUPE_KERNELS_CONTROL_WORD_H_
#define TROUPE_KERNELS_CONTROL_WORD_H_

#include "base/status.h"
#include "collective/communicator.h"

namespace troupe::kernels {

// Reduces `control` over all ranks, each lane in its own way. A null communicator is a group of
// one.
Status ReduceControlWord(Communicator* communicator, double* control);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_CONTROL_WORD_H_
