// Applies the documented default of every key of the job file (proto/troupe/v1/job.proto). Pure.
#ifndef TROUPE_PLAN_JOB_DEFAULTS_H_
#define TROUPE_PLAN_JOB_DEFAULTS_H_

#include <string_view>

#include "troupe/v1/job.pb.h"

namespace troupe {

// Fills every absent field that has a default; present fields are left as they are. `model.preset`
// gives the defaults of the model. Without a preset they are those of `tiny`, except that the
// number of key-value heads is the number of heads, and intermediate_size is 8/3 of the hidden size
// rounded up to a multiple of 64. An unknown preset is left for ValidateJobSpec to refuse.
// Idempotent.
void ApplyDefaults(v1::JobSpec* spec);

// The names of the presets for messages: "tiny, llama-124m, …".
const char* KnownPresets();
bool IsKnownPreset(std::string_view name);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_DEFAULTS_H_
