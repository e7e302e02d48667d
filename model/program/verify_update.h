// Rules of Reduce and Update for every gradient that types alone cannot express. Pure.
#ifndef TROUPE_MODEL_PROGRAM_VERIFY_UPDATE_H_
#define TROUPE_MODEL_PROGRAM_VERIFY_UPDATE_H_

#include "base/status.h"
#include "model/program/program.h"

namespace troupe::model {

// Whether this rank counts the gradient of `entry` in the global norm. Of the ranks that hold a
// copy, only the one at coordinate 0 of every axis along which the parameter is Replicated counts
// it; for a tied parameter only the first stage. A frozen one has no gradient.
bool CountedInNorm(const Program& program, const ParameterEntry& entry);

// INTERNAL unless Update reduces the control word once, counts in the norm exactly the gradients
// that this rank must count, counts the applied steps once and then updates every parameter by
// exactly one optimizer, from its gradient with the parameter's placement.
Status CheckOptimizer(const Program& program);

// INTERNAL unless tied gradients are summed over their owners once and other gradients never.
Status CheckOwners(const Program& program);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_VERIFY_UPDATE_H_
