// Islands of a plan's ranks: ranks of one island have fast links to each other. Pure.
#ifndef TROUPE_PLAN_LAYOUT_ISLANDS_H_
#define TROUPE_PLAN_LAYOUT_ISLANDS_H_

#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/program/collective_group.h"
#include "plan/layout/mesh.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// A value; thread-safe.
class Islands {
 public:
  // Uses the islands on which a placed plan's ranks are. In an unplaced plan with a device profile
  // an island is a run of consecutive ranks as long as the profile's devices_per_island. In any
  // other plan the islands are not known.
  explicit Islands(const v1::Plan& plan);

  bool known() const { return !of_rank_.empty(); }
  // Whether `ranks` are on more than one island. REQUIRES (this and the next): known().
  bool Spans(std::span<const int> ranks) const;
  // Whether `group` spans several islands for any rank of the stage `pipe_rank`.
  bool Spans(const Mesh& mesh, const model::CollectiveGroup& group, int pipe_rank) const;

  bool operator==(const Islands&) const = default;

 private:
  std::vector<int> of_rank_;  // island index of each rank, numbered in order of first appearance
};

// A line for each of the axes context and expert that has groups which span several islands, where
// islands are known: the traffic of these axes is on the critical path of every layer.
std::vector<std::string> CrossingLines(const v1::Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PLAN_LAYOUT_ISLANDS_H_
