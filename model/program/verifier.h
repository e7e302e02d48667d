// Type-checks a program: what the placement rules say of every operation, and what they cannot see
// alone (each value read after it is made and before its storage is reused, every parameter's
// gradient reduced once, the norm counting every global element once).
#ifndef TROUPE_MODEL_PROGRAM_VERIFIER_H_
#define TROUPE_MODEL_PROGRAM_VERIFIER_H_

#include "base/status.h"
#include "model/program/program.h"

namespace troupe::model {

// INTERNAL naming piece, operation, value, axis and placements of the first thing that is wrong: a
// missing or doubled collective, a gradient that reaches the optimizer Partial, a norm on Partial …
Status VerifyProgram(const Program& program);

// Whether this rank counts the gradient of `entry` in the global norm: of the ranks that hold a
// copy, only the one at coordinate 0 of every axis along which the parameter is Replicated, and for
// a tied one the first stage.
bool CountedInNorm(const Program& program, const ParameterEntry& entry);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_VERIFIER_H_
