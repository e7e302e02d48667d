// Whether a stage program can be built of some numbers. Pure.
#ifndef TROUPE_MODEL_CHECK_OPTIONS_H_
#define TROUPE_MODEL_CHECK_OPTIONS_H_

#include "base/status.h"
#include "model/build.h"

namespace troupe::model {

// INVALID_ARGUMENT as BuildProgram has it.
Status CheckOptions(const BuildOptions& options);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_CHECK_OPTIONS_H_
