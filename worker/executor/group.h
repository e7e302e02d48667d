// Which ranks make up a group of collectives, from the plan's mesh alone. Pure.
#ifndef TROUPE_WORKER_EXECUTOR_GROUP_H_
#define TROUPE_WORKER_EXECUTOR_GROUP_H_

#include <string>
#include <vector>

#include "collective/operation.h"
#include "model/program/op.h"
#include "model/program/program.h"
#include "plan/mesh.h"

namespace troupe {

// The mesh and which pipe ranks own a tied embedding.
struct GroupMesh {
  Mesh mesh;
  int first_stage = 0;  // pipe rank of the first chunk
  int last_stage = 0;   // and of the last
};

// The ranks of the group that `rank` belongs to, in group order: kAxes: all that differ from it
// along those axes only (of data_shard in one run, or across runs, where the group is such a part); kOwners: along pipe only, the stages that own the tied embedding; kAll:
// everyone.
std::vector<int> RanksOfGroup(const GroupMesh& mesh, int rank, const model::CollectiveGroup& group);

// "tensor", "data_replicate+data_shard", "data_shard_within_2", "owners", "all"; axes of one rank are left out.
std::string AxisText(const GroupMesh& mesh, const model::CollectiveGroup& group);

// Every group on which `program` has a collective, in an order that all ranks of the job share,
// each once, with the purpose of its first collective.
struct UsedGroup {
  model::CollectiveGroup group;
  model::CollectivePurpose purpose;
};
std::vector<UsedGroup> GroupsOf(const model::Program& program);

// The word of collective/ for a purpose of model/.
Purpose PurposeOf(model::CollectivePurpose purpose);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_GROUP_H_
