// Applies the default of every key of the job file: those that the schema states
// (proto/troupe/v1/job.proto) and those that are computed from other keys. Pure.
#ifndef TROUPE_PLAN_JOB_JOB_DEFAULTS_H_
#define TROUPE_PLAN_JOB_JOB_DEFAULTS_H_

#include <string>
#include <string_view>

#include "troupe/v1/job.pb.h"

namespace troupe {

// Fills every absent field that has a default; present fields are left as they are. `model.preset`
// replaces the defaults of the model. An unknown preset is left for ValidateJobSpec to refuse.
// Idempotent.
void ApplyDefaults(v1::JobSpec* spec);

// The names of the presets for messages: "tiny, llama-124m, …".
std::string KnownPresets();
bool IsKnownPreset(std::string_view name);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_JOB_DEFAULTS_H_
