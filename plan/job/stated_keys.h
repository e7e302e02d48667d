// Distinguishes the keys that a user stated from those that got defaults. A completed spec has
// both, and when a job is resumed with other keys, a stated value stays, while a default that
// follows from other keys follows them again. Pure.
#ifndef TROUPE_PLAN_JOB_STATED_KEYS_H_
#define TROUPE_PLAN_JOB_STATED_KEYS_H_

#include <span>
#include <string_view>

#include "troupe/v1/catalog.pb.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// The keys whose defaults follow from other keys, without those of `model`, which a resumed job
// keeps (plan/job/kept_keys.h).
std::span<const std::string_view> DerivedKeys();

// Adds the keys that `stated` has to `keys`: those of DerivedKeys, and those whose defaults are
// dropped where they have no effect (plan/job/key_effects.h).
void AddStatedKeys(const v1::JobSpec& stated, v1::StatedKeys* keys);

// Clears every key of DerivedKeys that is not in `stated`, so that it gets its default again.
void ClearDerivedDefaults(const v1::StatedKeys& stated, v1::JobSpec* spec);

// Clears the defaults of `spec` that have no effect. REQUIRES: defaults are applied to `spec`.
void DropDefaults(const v1::StatedKeys& stated, v1::JobSpec* spec);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_STATED_KEYS_H_
