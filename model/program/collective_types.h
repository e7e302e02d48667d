// Which dtypes collectives take. A sum is made of numbers that are whole by themselves, so that a value in 8 bits, which
// means something with its scale alone, meets none; nor does it travel.
#ifndef TROUPE_MODEL_PROGRAM_COLLECTIVE_TYPES_H_
#define TROUPE_MODEL_PROGRAM_COLLECTIVE_TYPES_H_

#include "base/status.h"
#include "model/program/program.h"

namespace troupe::model {

// INVALID_ARGUMENT names the operation's kind, the value and its dtype where a collective does not take it: sums are of
// f32, bf16 and f64, maxima of f32, and what is moved is f32, bf16 or i32. OK for other operations.
Status CheckCollectiveTypes(const Program& program, const Op& op);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_COLLECTIVE_TYPES_H_
