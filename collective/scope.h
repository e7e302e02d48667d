// Whether a group of ranks is within one island, whose ranks have fast links to each other.
#ifndef TROUPE_COLLECTIVE_SCOPE_H_
#define TROUPE_COLLECTIVE_SCOPE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace troupe {

enum class Scope : uint8_t { kUnknown, kIsland, kAcross };

// "island", "across"; empty if it is unknown.
constexpr std::string_view Name(Scope scope) {
  switch (scope) {
    case Scope::kUnknown:
      return "";
    case Scope::kIsland:
      return "island";
    case Scope::kAcross:
      return "across";
  }
  return "";
}

// `islands`: number of the island of each rank of the job; empty: not known. REQUIRES: `ranks` are
// below its size, unless it is empty.
inline Scope ScopeOf(std::span<const int> islands, std::span<const int> ranks) {
  if (islands.empty() || ranks.empty()) return Scope::kUnknown;
  const auto island = [&](int rank) { return islands[static_cast<size_t>(rank)]; };
  const bool is_one =
      std::ranges::all_of(ranks, [&](int rank) { return island(rank) == island(ranks.front()); });
  return is_one ? Scope::kIsland : Scope::kAcross;
}

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_SCOPE_H_
