// What a program's Reduce and Update must do with every gradient, which types alone do not tell.
#ifndef TROUPE_MODEL_PROGRAM_VERIFY_UPDATE_H_
#define TROUPE_MODEL_PROGRAM_VERIFY_UPDATE_H_

#include "base/status.h"
#include "model/program/program.h"

namespace troupe::model {

// INTERNAL unless Update reduces the control word once, counts in the norm what this rank must
// count, and hands AdamW the gradient of every parameter, placed as it, and the number of applied
// steps.
Status CheckOptimizer(const Program& program);

// INTERNAL unless tied gradients are summed over their owners once, others never.
Status CheckOwners(const Program& program);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_VERIFY_UPDATE_H_
