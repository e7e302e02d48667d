// The ranks of a group of collectives, computed from the plan's mesh alone. Pure.
#ifndef TROUPE_WORKER_EXECUTOR_GROUP_H_
#define TROUPE_WORKER_EXECUTOR_GROUP_H_

#include <string>
#include <vector>

#include "collective/algorithm/operation.h"
#include "model/program/op.h"
#include "model/program/program.h"
#include "plan/layout/mesh.h"

namespace troupe {

// The mesh, and the pipe ranks that own a tied embedding.
struct GroupMesh {
  Mesh mesh;
  int first_stage = 0;  // pipe rank of the first chunk
  int last_stage = 0;   // pipe rank of the last chunk
};

// Returns the ranks of the group that `rank` belongs to, in group order:
// - kAxes: the ranks that differ from it only along those axes (for a group that is a part of
//   data_shard: only within one run, or only across runs).
// - kOwners: the ranks that differ from it only along pipe and own the tied embedding.
// - kAll: all ranks.
std::vector<int> RanksOfGroup(const GroupMesh& mesh, int rank, const model::CollectiveGroup& group);

// "tensor", "data_replicate+data_shard", "data_shard_within_2", "owners" or "all"; axes of one rank
// are omitted.
std::string AxisText(const GroupMesh& mesh, const model::CollectiveGroup& group);

// Every group on which `program` has a collective, each once, with the purpose of its first
// collective, in an order that all ranks of the job share.
struct UsedGroup {
  model::CollectiveGroup group;
  model::CollectivePurpose purpose;
};
std::vector<UsedGroup> GroupsOf(const model::Program& program);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_GROUP_H_
