// Compiles the stages of a plan for the TPUs of its profile, without any TPU. In builds without XLA
// (TROUPE_XLA) it returns UNIMPLEMENTED.
#ifndef TROUPE_CLI_COMPILE_COMPILE_PLAN_H_
#define TROUPE_CLI_COMPILE_COMPILE_PLAN_H_

#include <functional>
#include <string>

#include "base/status.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Sets compiled_bytes and compiled of each stage's memory. `begin_program` is called with the name
// of each program before it is compiled, which takes seconds or minutes. Errors: INVALID_ARGUMENT
// if the plan's profile is of no TPU, or if the compiler does not accept a program; NOT_FOUND, with
// the way to get it, if there is no libtpu; UNIMPLEMENTED, which names an operation that is not
// lowered; RESOURCE_EXHAUSTED, with the compiler's figures, if a program needs more memory than a
// device has. REQUIRES: `plan` is a plan of `spec`, whose defaults are filled in.
Status CompilePlan(const v1::JobSpec& spec,
                   const std::function<void(const std::string&)>& begin_program, v1::Plan* plan);

}  // namespace troupe

#endif  // TROUPE_CLI_COMPILE_COMPILE_PLAN_H_
