// The compiled programs of tests on XLA's CPU plugin.
#ifndef TROUPE_TESTS_LAYOUTS_XLA_PROGRAMS_H_
#define TROUPE_TESTS_LAYOUTS_XLA_PROGRAMS_H_

#include "base/status.h"
#include "kernels/xla/runtime/program_cache.h"

namespace troupe {

// Returns the process's programs, which its only client of the plugin compiles for short
// compilation, not for speed. Never destroyed: the plugin's own statics end before those of this
// program. NOT_FOUND if there is no plugin.
StatusOr<kernels::xla::ProgramCache*> XlaPrograms();

}  // namespace troupe

#endif  // TROUPE_TESTS_LAYOUTS_XLA_PROGRAMS_H_
