// The dtypes that collectives accept. A sum needs complete numbers; an FP8 tensor is meaningful
// only with its scale, so no collective reduces or sends one.
#ifndef TROUPE_MODEL_PROGRAM_COLLECTIVE_TYPES_H_
#define TROUPE_MODEL_PROGRAM_COLLECTIVE_TYPES_H_

#include "base/status.h"
#include "model/program/program.h"

namespace troupe::model {

// INVALID_ARGUMENT if a collective does not accept a value's dtype; it names the operation's kind,
// the value and its dtype. Sums accept f32, bf16 and f64, maxima f32, moved data f32, bf16 or i32.
// OK for other operations.
Status CheckCollectiveTypes(const Program& program, const Op& op);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_COLLECTIVE_TYPES_H_
