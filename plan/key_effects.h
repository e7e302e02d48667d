// The keys of a job file that do nothing next to what the rest of the job says, such as
// lr_schedule.decay_ratio without decay_type: wsd. One rule holds for all of them: a stated one is named by a warning of the plan (plan/key_warnings.h), and it is no part of
// the plan's digest. Keys that ask for what cannot be are refused instead (plan/validate.h). Pure.
#ifndef TROUPE_PLAN_KEY_EFFECTS_H_
#define TROUPE_PLAN_KEY_EFFECTS_H_

#include <span>
#include <string>
#include <string_view>

#include "troupe/v1/job.pb.h"

namespace troupe {

// A key that can be without effect.
struct ConditionalKey {
  std::string_view path;
  // Why no value of it would change anything about the job, whose other keys have their defaults;
  // empty: one would.
  std::string (*why_without_effect)(const v1::JobSpec& spec);
  // Its default is not applied where it has no effect: one that is present was stated. Of the others
  // only values unlike their default are known to be.
  bool drops_default = false;
};

std::span<const ConditionalKey> ConditionalKeys();

// As ConditionalKey has it; empty for every other key.
std::string WhyWithoutEffect(const v1::JobSpec& spec, std::string_view path);

// Clears every key of `spec` that drops its default, has no effect and is absent in `stated`.
void DropDefaults(const v1::JobSpec& stated, v1::JobSpec* spec);

// Clears every key that has no effect.
void ClearKeysWithoutEffect(v1::JobSpec* spec);

}  // namespace troupe

#endif  // TROUPE_PLAN_KEY_EFFECTS_H_
