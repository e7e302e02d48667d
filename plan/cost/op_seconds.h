// Prices single operations of a stage program on a device of a profile. Pure.
#ifndef TROUPE_PLAN_COST_OP_SECONDS_H_
#define TROUPE_PLAN_COST_OP_SECONDS_H_

#include "model/cost.h"
#include "model/program/program.h"
#include "troupe/v1/device_profile.pb.h"

namespace troupe {

// Prices the operations that compute.
class ComputeSeconds {
 public:
  // `peak`: FLOPs per second of the job's compute dtype. Keeps a reference to `profile`.
  ComputeSeconds(const v1::DeviceProfile& profile, double peak);

  // Seconds of an operation that is no collective: its FLOPs at the attained rate or its bytes at
  // the rate of memory, whichever takes longer, and its launch.
  double Of(const model::Op& op, const model::Program& program) const;

 private:
  const v1::DeviceProfile& profile_;
  const double matmul_flops_, attention_flops_;  // attained per second
};

// The use of a link by a collective of `ranks` ranks: the seconds are rounds × latency + bytes /
// rate.
struct LinkUse {
  double rounds = 0;
  double bytes = 0;
  double SecondsOn(const v1::LinkProfile& link) const {
    return rounds * link.latency_seconds() + bytes / link.bytes_per_second();
  }
};
LinkUse LinkUseOf(const model::CollectiveCost& collective, int ranks);

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_OP_SECONDS_H_
