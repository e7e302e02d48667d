#include "plan/cost/op_seconds.h"

#include <algorithm>

#include "model/program/op_rules.h"
#include "plan/device/device_profile.h"

namespace troupe {

ComputeSeconds::ComputeSeconds(const v1::DeviceProfile& profile, double peak)
    : profile_(profile),
      matmul_flops_(peak * profile.matmul_efficiency()),
      attention_flops_(peak * AttentionEfficiency(profile)) {}

double ComputeSeconds::Of(const model::Op& op, const model::Program& program) const {
  const bool is_attention = model::FindAttention(op.attributes) != nullptr;
  const double arithmetic =
      model::ModelFlops(op, program) / (is_attention ? attention_flops_ : matmul_flops_);
  const auto bytes = static_cast<double>(model::BytesMoved(op, program));
  return std::max(arithmetic, bytes / profile_.memory_bytes_per_second()) +
         profile_.launch_seconds();
}

LinkUse LinkUseOf(const model::CollectiveCost& collective, int ranks) {
  // In a ring, for a reduction and for a gather, each part passes from rank to rank.
  const double rounds =
      collective.kind == model::OpKind::kShift      ? 1.0
      : collective.kind == model::OpKind::kRelayout ? 2.0  // each chunk to its rank
      : collective.sent_bytes > static_cast<double>(collective.payload_bytes) ? 2.0 * (ranks - 1)
                                                                              : ranks - 1;
  return {rounds, collective.sent_bytes};
}

}  // namespace troupe
