#include "plan/layout/islands.h"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {
namespace {

using model::Axis;
using model::CollectiveGroup;

std::vector<int> RanksOf(const Mesh& mesh, const CollectiveGroup& group, int rank) {
  switch (group.kind) {
    case CollectiveGroup::Kind::kOwners:
      return mesh.GroupOf(rank, Axis::kPipe);
    case CollectiveGroup::Kind::kAll:
      return mesh.GroupOf(rank, (1u << model::kNumAxes) - 1);
    case CollectiveGroup::Kind::kAxes:
      break;
  }
  return mesh.GroupOf(rank, group);
}

}  // namespace

Islands::Islands(const v1::Plan& plan) {
  const bool placed = std::ranges::all_of(
      plan.ranks(), [](const v1::RankPlacement& rank) { return !rank.island().empty(); });
  if (placed) {
    std::map<std::string, int> numbers;
    for (const v1::RankPlacement& rank : plan.ranks()) {
      of_rank_.push_back(
          numbers.emplace(rank.island(), static_cast<int>(numbers.size())).first->second);
    }
    return;
  }
  const int devices = static_cast<int>(plan.device_profile().devices_per_island());
  if (devices <= 0) return;
  for (int rank = 0; rank < plan.ranks_size(); ++rank) of_rank_.push_back(rank / devices);
}

bool Islands::Spans(std::span<const int> ranks) const {
  return std::ranges::any_of(ranks, [&](int rank) {
    return of_rank_[static_cast<size_t>(rank)] != of_rank_[static_cast<size_t>(ranks.front())];
  });
}

bool Islands::Spans(const Mesh& mesh, const CollectiveGroup& group, int pipe_rank) const {
  const int ranks = mesh.ranks() / mesh.degree(Axis::kPipe);
  for (int rank = pipe_rank * ranks; rank < (pipe_rank + 1) * ranks; ++rank) {
    if (Spans(RanksOf(mesh, group, rank))) return true;
  }
  return false;
}

std::vector<std::string> CrossingLines(const v1::Plan& plan) {
  const Islands islands(plan);
  if (!islands.known()) return {};
  const Mesh mesh(plan.mesh());
  std::vector<std::string> lines;
  for (const Axis axis : {Axis::kContext, Axis::kExpert}) {
    int groups = 0, crossing = 0;
    std::string first;
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      const std::vector<int> group = mesh.GroupOf(rank, axis);
      if (group.size() == 1 || group.front() != rank) continue;
      ++groups;
      if (!islands.Spans(group)) continue;
      if (crossing++ == 0) first = fmt::format("{}", fmt::join(group, ", "));
    }
    if (crossing == 0) continue;
    lines.push_back(
        fmt::format("{} of {} {} groups cross{} islands, the first of ranks {}: {} waits for the "
                    "slower links in every layer",
                    crossing, groups, Name(axis), crossing == 1 ? "es" : "", first,
                    axis == Axis::kExpert ? "the exchange of routed tokens" : "attention"));
  }
  return lines;
}

}  // namespace troupe
