// The mesh of a job: a grid of ranks with named axes. In rank numbers `tensor` varies fastest, then
// expert, context, data_shard, data_replicate, and `pipe` slowest, so that the ranks that
// communicate most have neighbouring numbers.
//
// A value; thread-safe.
#ifndef TROUPE_PLAN_LAYOUT_MESH_H_
#define TROUPE_PLAN_LAYOUT_MESH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/program/placement.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

namespace model {
struct CollectiveGroup;
}

class Mesh {
 public:
  // REQUIRES: every degree is at least 1.
  explicit Mesh(const model::PerAxis& degrees);
  explicit Mesh(const v1::MeshDegrees& degrees);

  int ranks() const { return ranks_; }
  int degree(model::Axis axis) const { return degrees_[axis]; }
  const model::PerAxis& degrees() const { return degrees_; }

  // REQUIRES: 0 <= rank < ranks().
  model::PerAxis CoordinatesOf(int rank) const;
  // REQUIRES: 0 <= coordinates[a] < degree(a) for every axis a.
  int RankOf(const model::PerAxis& coordinates) const;
  // The ranks that differ from `rank` only in the coordinates of `axes` (bit a: model::Axis a),
  // ascending, including `rank`.
  std::vector<int> GroupOf(int rank, unsigned axes) const;
  std::vector<int> GroupOf(int rank, model::Axis axis) const {
    return GroupOf(rank, 1u << static_cast<int>(axis));
  }

  // The ranks of `group`, which is a group of axes or a part of one. REQUIRES: `group` is a group
  // of axes.
  std::vector<int> GroupOf(int rank, const model::CollectiveGroup& group) const;

  // The number of ranks that get different samples. Samples are split over data_replicate,
  // data_shard and expert, in this order.
  int data_ranks() const;
  // 0 <= DataRankOf(rank) < data_ranks().
  int DataRankOf(int rank) const;

  v1::MeshDegrees ToProto() const;
  static v1::MeshCoordinates ToProto(const model::PerAxis& coordinates);

 private:
  model::PerAxis degrees_;
  int ranks_;
};

// The most ranks that a job may have.
inline constexpr int64_t kMaxRanks = int64_t{1} << 16;

// The mesh of a job; an absent degree is 1. INVALID_ARGUMENT where the product of the degrees is
// above kMaxRanks.
StatusOr<Mesh> MakeMesh(const v1::ParallelismSpec& parallelism);

// The product of the six degrees. REQUIRES: ValidateJobSpec accepts the job.
int64_t RankCount(const v1::ParallelismSpec& parallelism);

}  // namespace troupe

#endif  // TROUPE_PLAN_LAYOUT_MESH_H_
