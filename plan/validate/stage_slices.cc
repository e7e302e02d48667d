#include "plan/validate/stage_slices.h"

#include "plan/device/tpu_model.h"
#include "plan/job/violation.h"
#include "plan/layout/slice_placement.h"

namespace troupe {

Status CheckStageSlices(const DecodedJob& job) {
  const Mesh& mesh = job.mesh;
  const int ranks = mesh.ranks() / mesh.degree(model::Axis::kPipe);
  Violations violations;
  if (RectanglesOf(ranks).empty()) {
    violations.Add("parallelism",
                   "has degrees data_replicate {} × data_shard {} × context {} × expert {} × "
                   "tensor {} = {} ranks in a pipeline stage, but on TPUs they are a slice, whose "
                   "number of chips is a power of two",
                   mesh.degree(model::Axis::kDataReplicate), mesh.degree(model::Axis::kDataShard),
                   mesh.degree(model::Axis::kContext), mesh.degree(model::Axis::kExpert),
                   mesh.degree(model::Axis::kTensor), ranks);
  }
  if (ranks > 1 && job.spec.parallelism().shard_whole_matrices()) {
    violations.Add("parallelism.shard_whole_matrices",
                   "is true, but on TPUs the ranks of a pipeline stage run one program, for which "
                   "each stores an equal share of a matrix");
  }
  return violations.ToStatus();
}

bool HasStageSlices(std::string_view device_model) {
  const TpuModel* const model = FindTpuModel(device_model);
  return model != nullptr && model->devices_per_chip == 1;
}

}  // namespace troupe
