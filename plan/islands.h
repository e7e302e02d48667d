// Which ranks of a plan have quick links to each other. Pure.
#ifndef TROUPE_PLAN_ISLANDS_H_
#define TROUPE_PLAN_ISLANDS_H_

#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/program/collective_group.h"
#include "plan/mesh.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// A value; thread-safe.
class Islands {
 public:
  // Those that a placed plan's ranks are on; of an unplaced plan with a device profile runs of
  // consecutive ranks, as many as the profile's islands have devices; else they are not known.
  explicit Islands(const v1::Plan& plan);

  bool known() const { return !of_rank_.empty(); }
  // REQUIRES for both: known().
  bool Spans(std::span<const int> ranks) const;
  // Whether `group` spans several for any rank of the stage `pipe_rank`.
  bool Spans(const Mesh& mesh, const model::CollectiveGroup& group, int pipe_rank) const;

  bool operator==(const Islands&) const = default;

 private:
  std::vector<int> of_rank_;  // numbers of islands, in the order in which ranks first name them
};

// A line for each of the axes context and expert whose groups span several islands, where these are
// known: their traffic is on the critical path of every layer.
std::vector<std::string> CrossingLines(const v1::Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PLAN_ISLANDS_H_
