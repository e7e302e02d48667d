// The bytes that an optimizer holds and moves, read from the operation of Update that it builds.
#ifndef TROUPE_MODEL_OPTIMIZERS_OPTIMIZER_BYTES_H_
#define TROUPE_MODEL_OPTIMIZERS_OPTIMIZER_BYTES_H_

#include "model/optimizers/optimizer_kind.h"

namespace troupe::model {

// For each element of a parameter.
struct OptimizerBytes {
  double state = 0;  // kept between steps
  double moved = 0;  // read and written in a step (BytesMoved)
};

// `copies`: F reads a bfloat16 copy of the float32 master. Pure.
OptimizerBytes BytesOfOptimizer(const OptimizerConfig& config, bool copies);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_OPTIMIZERS_OPTIMIZER_BYTES_H_
