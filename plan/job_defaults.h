// The documented default of every key of the job file (proto/troupe/v1/job.proto), made explicit. Pure.
#ifndef TROUPE_PLAN_JOB_DEFAULTS_H_
#define TROUPE_PLAN_JOB_DEFAULTS_H_

#include <string_view>

#include "troupe/v1/job.pb.h"

namespace troupe {

// Fills every absent field that has a default; a present one is left as it is. `model.preset` gives the model's
// defaults; without it they are the `tiny` preset's, but key-value heads are as many as heads, and intermediate_size
// is 8/3 of the hidden size rounded up to a multiple of 64. An unknown preset is left for ValidateJobSpec to refuse.
// Idempotent.
void ApplyDefaults(v1::JobSpec* spec);

// "tiny, llama-124m, …", for messages.
const char* KnownPresets();
bool IsKnownPreset(std::string_view name);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_DEFAULTS_H_
