// The ranks that count a parameter's gradient in the global norm. Pure.
#ifndef TROUPE_MODEL_PROGRAM_COUNTED_IN_NORM_H_
#define TROUPE_MODEL_PROGRAM_COUNTED_IN_NORM_H_

#include "model/program/program.h"

namespace troupe::model {

// Whether this rank counts the gradient of `entry` in the global norm. Of the ranks that hold a
// copy, only the one at coordinate 0 of every axis along which the parameter is Replicated counts
// it; for a tied parameter only the first stage.
bool CountedInNorm(const Program& program, const ParameterEntry& entry);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_COUNTED_IN_NORM_H_
