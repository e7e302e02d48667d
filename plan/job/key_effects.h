// Finds the keys of a job file that have no effect in combination with the rest of the job, such as
// lr_schedule.decay_ratio without decay_type: wsd. The same rule holds for all of them: a stated
// key without effect is reported in a warning of the plan (plan/job/key_warnings.h), and it is not
// part of the plan's digest. Keys that ask for something impossible are refused instead
// (plan/validate/validate.h). Pure.
#ifndef TROUPE_PLAN_JOB_KEY_EFFECTS_H_
#define TROUPE_PLAN_JOB_KEY_EFFECTS_H_

#include <span>
#include <string>
#include <string_view>

#include "troupe/v1/job.pb.h"

namespace troupe {

// A key that has no effect under some conditions.
struct ConditionalKey {
  std::string_view path;
  // Returns why no value of the key would change anything about the job, whose other keys have
  // their defaults; empty if some value would.
  std::string (*why_without_effect)(const v1::JobSpec& spec);
  // If true, the default is not applied where the key has no effect, so a key that is present was
  // stated by the user. For other keys only a value that differs from the default is known to be
  // stated.
  bool drops_default = false;
};

std::span<const ConditionalKey> ConditionalKeys();

// Calls the why_without_effect of the key at `path`; empty for a key that is not in
// ConditionalKeys.
std::string WhyWithoutEffect(const v1::JobSpec& spec, std::string_view path);

// True for the numbers of parallelism.bucket that have an effect on the job's layout.
struct BucketEffects {
  bool elements = false;
  bool alignment = false;  // gradients are sent between ranks
  bool padding = false;
};
BucketEffects BucketEffectsOf(const v1::JobSpec& spec);

// Clears every key of `spec` that has drops_default, has no effect, and is absent in `stated`.
void DropDefaults(const v1::JobSpec& stated, v1::JobSpec* spec);

// Clears every key that has no effect.
void ClearKeysWithoutEffect(v1::JobSpec* spec);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_KEY_EFFECTS_H_
