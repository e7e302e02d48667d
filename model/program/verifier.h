// Type-checks a program: the placement rules of every operation, and conditions beyond a single
// rule (each value is read after it is computed and before its storage is reused, every parameter's
// gradient is reduced once, the norm counts every global element once).
#ifndef TROUPE_MODEL_PROGRAM_VERIFIER_H_
#define TROUPE_MODEL_PROGRAM_VERIFIER_H_

#include "base/status.h"
#include "model/program/program.h"

namespace troupe::model {

// INTERNAL for the first error, naming piece, operation, value, axis and placements: a missing or
// duplicated collective, a Partial gradient that reaches the optimizer, a norm of a Partial value …
Status VerifyProgram(const Program& program);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_VERIFIER_H_
