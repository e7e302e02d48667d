#include "plan/device/gpu_reserve.h"

#include <set>
#include <vector>

namespace troupe {
namespace {

int64_t Groups(const model::Program& program) {
  std::set<model::CollectiveGroup> groups;
  const auto add = [&](const std::vector<model::Op>& ops) {
    for (const model::Op& op : ops) {
      if (op.kind == model::OpKind::kCopy) continue;  // a view: sends nothing
      const auto* const attributes = model::FindCollective(op.attributes);
      if (attributes != nullptr && GroupSize(program.mesh, attributes->group) > 1)
        groups.insert(attributes->group);
    }
  };
  for (const auto& pieces : program.ops) {
    for (const auto& ops : pieces) add(ops);
  }
  add(program.update);
  add(program.initialize);
  return static_cast<int64_t>(groups.size());
}

int64_t PipelineLinks(const v1::Plan& plan, const model::Program& program) {
  int64_t links = 0;
  for (const model::ChunkInterface& chunk : program.chunks) {
    for (const int neighbour : {chunk.chunk - 1, chunk.chunk + 1}) {
      if (neighbour < 0 || neighbour >= plan.chunks_size()) continue;
      // Neighbouring chunks of one rank exchange data in the rank's memory.
      if (plan.chunks(neighbour).pipe_rank() != plan.chunks(chunk.chunk).pipe_rank()) links += 2;
    }
  }
  return links;
}

}  // namespace

int64_t GpuReserveBytes(const v1::Plan& plan, const model::Program& program) {
  return kDriverReserveBytes + Groups(program) * kNcclGroupReserveBytes +
         PipelineLinks(plan, program) * kNcclLinkReserveBytes;
}

}  // namespace troupe
