// Checks the options for the compiler of XLA's devices.
#ifndef TROUPE_PLAN_VALIDATE_VALIDATE_XLA_H_
#define TROUPE_PLAN_VALIDATE_VALIDATE_XLA_H_

#include "plan/job/violation.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Adds a violation for each group that no device has, or for groups that no device has together;
// and for each option that is not NAME=VALUE, that is stated twice, or that would make numbers
// inexact. Only the plugin knows its options, and refuses an unknown one when it compiles. Pure.
void ValidateXla(const v1::XlaSpec& xla, Violations* violations);

}  // namespace troupe

#endif  // TROUPE_PLAN_VALIDATE_VALIDATE_XLA_H_
