#include "plan/layout/mesh.h"

#include <algorithm>

#include "base/check.h"
#include "model/program/op.h"

namespace troupe {

using model::Axis;
using model::kNumAxes;
using model::PerAxis;

Mesh::Mesh(const PerAxis& degrees) : degrees_(degrees), ranks_(1) {
  for (int degree : degrees.of) {
    TROUPE_CHECK(degree >= 1);
    ranks_ *= degree;
  }
}

Mesh::Mesh(const v1::MeshDegrees& degrees)
    : Mesh(PerAxis{{degrees.pipe(), degrees.data_replicate(), degrees.data_shard(),
                    degrees.context(), degrees.expert(), degrees.tensor()}}) {}

PerAxis Mesh::CoordinatesOf(int rank) const {
  TROUPE_CHECK(rank >= 0 && rank < ranks_, "rank {} of {}", rank, ranks_);
  PerAxis coordinates;
  for (int axis = kNumAxes - 1; axis >= 0; --axis) {
    coordinates.of[axis] = rank % degrees_.of[axis];
    rank /= degrees_.of[axis];
  }
  return coordinates;
}

int Mesh::RankOf(const PerAxis& coordinates) const {
  int rank = 0;
  for (int axis = 0; axis < kNumAxes; ++axis) {
    TROUPE_CHECK(coordinates.of[axis] >= 0 && coordinates.of[axis] < degrees_.of[axis]);
    rank = rank * degrees_.of[axis] + coordinates.of[axis];
  }
  return rank;
}

std::vector<int> Mesh::GroupOf(int rank, unsigned axes) const {
  PerAxis origin = CoordinatesOf(rank);
  std::vector<int> varying;
  int size = 1;
  for (int axis = 0; axis < kNumAxes; ++axis) {
    if ((axes >> axis & 1u) == 0) continue;
    varying.push_back(axis);
    size *= degrees_.of[axis];
  }
  std::vector<int> group;
  group.reserve(size);
  for (int member = 0; member < size; ++member) {
    PerAxis coordinates = origin;
    int rest = member;
    for (auto axis = varying.rbegin(); axis != varying.rend(); ++axis) {
      coordinates.of[*axis] = rest % degrees_.of[*axis];
      rest /= degrees_.of[*axis];
    }
    group.push_back(RankOf(coordinates));
  }
  return group;
}

std::vector<int> Mesh::GroupOf(int rank, const model::CollectiveGroup& group) const {
  TROUPE_CHECK(group.kind == model::CollectiveGroup::Kind::kAxes);
  std::vector<int> ranks = GroupOf(rank, group.axes);
  if (group.part == model::CollectiveGroup::Part::kWhole) return ranks;
  const PerAxis mine = CoordinatesOf(rank);
  std::erase_if(
      ranks, [&](int other) { return !model::AreInOneGroup(group, mine, CoordinatesOf(other)); });
  return ranks;
}

int Mesh::data_ranks() const {
  return degree(Axis::kDataReplicate) * degree(Axis::kDataShard) * degree(Axis::kExpert);
}

int Mesh::DataRankOf(int rank) const {
  const PerAxis at = CoordinatesOf(rank);
  return (at[Axis::kDataReplicate] * degree(Axis::kDataShard) + at[Axis::kDataShard]) *
             degree(Axis::kExpert) +
         at[Axis::kExpert];
}

v1::MeshDegrees Mesh::ToProto() const {
  v1::MeshDegrees proto;
  proto.set_pipe(degree(Axis::kPipe));
  proto.set_data_replicate(degree(Axis::kDataReplicate));
  proto.set_data_shard(degree(Axis::kDataShard));
  proto.set_context(degree(Axis::kContext));
  proto.set_expert(degree(Axis::kExpert));
  proto.set_tensor(degree(Axis::kTensor));
  return proto;
}

v1::MeshCoordinates Mesh::ToProto(const PerAxis& coordinates) {
  v1::MeshCoordinates proto;
  proto.set_pipe(coordinates[Axis::kPipe]);
  proto.set_data_replicate(coordinates[Axis::kDataReplicate]);
  proto.set_data_shard(coordinates[Axis::kDataShard]);
  proto.set_context(coordinates[Axis::kContext]);
  proto.set_expert(coordinates[Axis::kExpert]);
  proto.set_tensor(coordinates[Axis::kTensor]);
  return proto;
}

StatusOr<Mesh> MakeMesh(const v1::ParallelismSpec& parallelism) {
  PerAxis degrees;
  int64_t ranks = 1;
  const auto set = [&](Axis axis, int64_t degree) {
    // Beyond the limit the product is not computed any more: it might overflow.
    if (ranks <= kMaxRanks) ranks *= std::clamp<int64_t>(degree, 1, kMaxRanks + 1);
    degrees[axis] = static_cast<int32_t>(std::clamp<int64_t>(degree, 1, kMaxRanks));
  };
  set(Axis::kPipe, parallelism.pipeline_parallel_degree());
  set(Axis::kDataReplicate, parallelism.data_parallel_replicate_degree());
  set(Axis::kDataShard, parallelism.data_parallel_shard_degree());
  set(Axis::kContext, parallelism.context_parallel_degree());
  set(Axis::kExpert, parallelism.expert_parallel_degree());
  set(Axis::kTensor, parallelism.tensor_parallel_degree());
  if (ranks > kMaxRanks)
    return InvalidArgument("parallelism has degrees whose product is above {} ranks", kMaxRanks);
  return Mesh(degrees);
}

int64_t RankCount(const v1::ParallelismSpec& parallelism) {
  return parallelism.data_parallel_replicate_degree() * parallelism.data_parallel_shard_degree() *
         parallelism.tensor_parallel_degree() * parallelism.pipeline_parallel_degree() *
         parallelism.context_parallel_degree() * parallelism.expert_parallel_degree();
}

}  // namespace troupe
