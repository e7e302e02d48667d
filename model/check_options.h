// Checks whether a stage program can be built from given options. Pure.
#ifndef TROUPE_MODEL_CHECK_OPTIONS_H_
#define TROUPE_MODEL_CHECK_OPTIONS_H_

#include "base/status.h"
#include "model/blocks/build_options.h"

namespace troupe::model {

// Returns the INVALID_ARGUMENT errors of BuildProgram.
Status CheckOptions(const BuildOptions& options);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_CHECK_OPTIONS_H_
