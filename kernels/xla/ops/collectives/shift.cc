#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/ops/ranks.h"
#include "kernels/xla/ops/slice_group.h"

namespace troupe::kernels::xla {

Status Shift(const Lowering& lowering) {
  if (!HasPeers(lowering)) return Copy(lowering);
  const int shift = lowering.attributes<model::ShiftAttributes>().shift;
  std::vector<std::pair<int, int>> pairs;
  for (const std::vector<int>& group : PartitionGroups(lowering)) {
    const auto ranks = static_cast<int>(group.size());
    for (int i = 0; i < ranks; ++i)
      pairs.emplace_back(group[i], group[((i + shift) % ranks + ranks) % ranks]);
  }
  const Tensor x = lowering.ranks.ReadPadded(lowering.op.inputs[0]);
  lowering.ranks.WritePadded(lowering.op.outputs[0], lowering.text.Permute(x, pairs));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
