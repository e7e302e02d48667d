// Builds the stage program of one rank from a model's configuration and the rank's coordinates.
//
// Pure; building 12 layers takes a few milliseconds.
#ifndef TROUPE_MODEL_BUILD_H_
#define TROUPE_MODEL_BUILD_H_

#include "base/status.h"
#include "model/blocks/build_options.h"
#include "model/program/program.h"

namespace troupe::model {

// Builds the program of one rank and verifies it. If any loss or gradient is not finite, Update
// changes nothing (control lane nonfinite); the executor decides whether the job fails or
// continues.
//
// INVALID_ARGUMENT names the value and the relation that fails: heads not divisible by the tensor
// degree; key-value heads neither divisible by it nor a divisor of it; intermediate_size,
// vocab_size or (with sequence parallelism) the rows of a microbatch below it; an odd head_dim;
// chunks that are not consecutive; axes that this builder does not support.
StatusOr<Program> BuildProgram(const BuildOptions& options);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BUILD_H_
