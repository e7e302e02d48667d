#include "coordinator/faults/hang_blame.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

namespace troupe {
namespace {

using Flights = std::vector<std::optional<v1::RankFlight>>;

// A rank blocked in an operation.
struct BlockedRank {
  int rank = -1;
  const v1::GroupFlight* group = nullptr;
  std::vector<int> late;  // members that have not reported entering it
};

// Returns the number of operations of `group` that `rank` has entered; 0 if it did not report any.
uint64_t Entered(const Flights& flights, int rank, const std::string& group) {
  if (rank < 0 || rank >= static_cast<int>(flights.size()) || !flights[static_cast<size_t>(rank)])
    return 0;
  for (const v1::GroupFlight& flight : flights[static_cast<size_t>(rank)]->groups()) {
    if (flight.group() == group) return flight.entered();
  }
  return 0;
}

std::vector<BlockedRank> BlockedRanks(const Flights& flights) {
  std::vector<BlockedRank> blocked;
  for (size_t rank = 0; rank < flights.size(); ++rank) {
    if (!flights[rank]) continue;
    for (const v1::GroupFlight& group : flights[rank]->groups()) {
      if (group.blocked_in() == 0) continue;
      BlockedRank one{static_cast<int>(rank), &group, {}};
      for (const int member : group.ranks()) {
        if (member != one.rank && Entered(flights, member, group.group()) < group.blocked_in())
          one.late.push_back(member);
      }
      blocked.push_back(std::move(one));
    }
  }
  return blocked;
}

bool WaitsFor(const BlockedRank& one, int rank) {
  return std::find(one.late.begin(), one.late.end(), rank) != one.late.end();
}

// Returns, for example, "operation 812 (all_reduce, grad_reduce, 4096 bytes) of data/0 on axis
// data".
std::string OperationText(const v1::GroupFlight& group) {
  return fmt::format("operation {} ({}, {}, {} bytes) of {} on axis {}", group.blocked_in(),
                     group.operation(), group.purpose(), group.bytes(), group.group(),
                     group.axis());
}

// Returns the ranks that did not report.
std::vector<int> Silent(const Flights& flights) {
  std::vector<int> silent;
  for (size_t rank = 0; rank < flights.size(); ++rank) {
    if (!flights[rank]) silent.push_back(static_cast<int>(rank));
  }
  return silent;
}

HangBlame BlameOne(const Flights& flights, const std::vector<BlockedRank>& blocked, int rank) {
  const BlockedRank* longest = nullptr;
  std::vector<int> waiting;
  for (const BlockedRank& one : blocked) {
    if (!WaitsFor(one, rank)) continue;
    waiting.push_back(one.rank);
    if (longest == nullptr || one.group->waited_seconds() > longest->group->waited_seconds())
      longest = &one;
  }
  const auto& flight = flights[static_cast<size_t>(rank)];
  return {rank,
          fmt::format("rank {} did not enter {}, in which {} {} {} been blocked for {:.1f} s; {}",
                      rank, OperationText(*longest->group), waiting.size() == 1 ? "rank" : "ranks",
                      fmt::join(waiting, ", "), waiting.size() == 1 ? "has" : "have",
                      longest->group->waited_seconds(),
                      flight ? "it was at " + flight->activity()
                             : "it does not answer: its process or host is suspended"),
          {}};
}

// Handles the case that no rank is blocked in an operation.
HangBlame BlameWithoutBlockedRanks(const Flights& flights) {
  const std::vector<int> silent = Silent(flights);
  if (silent.size() == 1) {
    return {silent[0],
            fmt::format("rank {} does not answer: its process or host is suspended", silent[0]),
            {}};
  }
  if (!silent.empty()) {
    return {-1,
            fmt::format("ranks {} do not answer, and no rank waits for one of them in a "
                        "collective, so the one that stopped first is unknown",
                        fmt::join(silent, ", ")),
            silent};
  }
  std::string text;
  for (size_t rank = 0; rank < flights.size(); ++rank) {
    text += fmt::format("{}rank {} at {}", rank == 0 ? "" : ", ", rank, flights[rank]->activity());
  }
  return {flights.size() == 1 ? 0 : -1, "no rank waits for another in a collective: " + text, {}};
}

}  // namespace

HangBlame BlameForHang(const Flights& flights) {
  const std::vector<BlockedRank> blocked = BlockedRanks(flights);
  if (blocked.empty()) return BlameWithoutBlockedRanks(flights);
  // Ranks the candidates: no report, then the number of ranks that wait for it, then the lower
  // rank.
  using Weight = std::tuple<bool, int64_t, int>;
  std::optional<Weight> most;
  for (int rank = 0; rank < static_cast<int>(flights.size()); ++rank) {
    const auto waiting =
        std::count_if(blocked.begin(), blocked.end(),
                      [rank](const BlockedRank& one) { return WaitsFor(one, rank); });
    const bool waits_itself = std::any_of(
        blocked.begin(), blocked.end(),
        [rank](const BlockedRank& one) { return one.rank == rank && !one.late.empty(); });
    if (waiting == 0 || waits_itself) continue;
    const Weight weight(!flights[static_cast<size_t>(rank)], waiting, -rank);
    if (!most || weight > *most) most = weight;
  }
  if (most) return BlameOne(flights, blocked, -std::get<int>(*most));
  std::string text;
  bool any_late = false;
  for (const BlockedRank& one : blocked) {
    text += fmt::format("{}rank {} in {}", text.empty() ? "" : ", ", one.rank,
                        OperationText(*one.group));
    any_late |= !one.late.empty();
  }
  return {-1,
          (any_late ? "ranks wait for each other: "
                    : "all members have entered, but their data does not arrive: ") +
              text,
          {}};
}

}  // namespace troupe
