// Numbers of parallelism.bucket that were stated for another layout than the one that they are used
// on. A job keeps them when it is resumed on other ranks or continues on fewer. Pure.
#ifndef TROUPE_PLAN_LAYOUT_BUCKET_ORIGIN_H_
#define TROUPE_PLAN_LAYOUT_BUCKET_ORIGIN_H_

#include <string>
#include <vector>

#include "plan/job/key_effects.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Records in `plan` the mesh that the stated numbers of parallelism.bucket are meant for and adds
// the warnings of InheritedBucketLines. Has no effect if none is stated or the ranks that reduce a
// bucket have the same degrees in that mesh. REQUIRES: `plan` is of `spec`, which has its numbers
// from the spec of `former`.
void InheritBucketNumbers(const v1::JobSpec& spec, const v1::Plan& former, v1::Plan* plan);

// A line on a stated padding that fits another topology, as in a job file written for another one.
// Numbers that are not stated follow from the ranks of `plan`.
std::vector<std::string> UnevenPaddingLines(const v1::BucketSpec& stated,
                                            const BucketEffects& effects, const v1::Plan& plan);

// One line for each stated number that has an effect and was stated for another layout, with the
// degrees that differ.
std::vector<std::string> InheritedBucketLines(const v1::BucketSpec& stated,
                                              const BucketEffects& effects, const v1::Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PLAN_LAYOUT_BUCKET_ORIGIN_H_
