// What a resumed job must keep of its spec: its checkpoints hold tensors of that model, cut for those
// degrees. Pure.
#ifndef TROUPE_PLAN_KEPT_KEYS_H_
#define TROUPE_PLAN_KEPT_KEYS_H_

#include "base/status.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// INVALID_ARGUMENT naming every key of `model` and every degree of `parallelism` whose value in
// `after` differs from that in `before`, with both. REQUIRES: defaults are applied to both.
Status CheckKeptKeys(const v1::JobSpec& before, const v1::JobSpec& after);

}  // namespace troupe

#endif  // TROUPE_PLAN_KEPT_KEYS_H_
