#include "worker/rank/network_options.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace troupe {
namespace {

// Operations recorded for traces: enough for several dozen steps of a large model on several axes.
constexpr int kRecordedOperations = 16384;

// The number of each rank's island; empty if an island is not known.
std::vector<int> IslandsOf(const v1::Plan& plan) {
  std::map<std::string, int> numbers;
  std::vector<int> islands(static_cast<size_t>(plan.ranks_size()));
  for (const v1::RankPlacement& placement : plan.ranks()) {
    const std::string& name = placement.island().empty() ? placement.host() : placement.island();
    if (name.empty() || placement.rank() < 0 || placement.rank() >= plan.ranks_size()) return {};
    islands[static_cast<size_t>(placement.rank())] =
        numbers.try_emplace(name, static_cast<int>(numbers.size())).first->second;
  }
  return islands;
}

}  // namespace

StatusOr<NetworkOptions> MakeNetworkOptions(const v1::BeginRank& begin, int cores) {
  NetworkOptions options;
  options.rank = begin.rank();
  options.ranks = begin.start().plan().ranks_size();
  options.group_epoch = begin.start().group_epoch();
  const std::string& key = begin.start().group_key();
  if (key.size() != options.group_key.size()) {
    return InvalidArgument("group_key has {} bytes, must have {}", key.size(),
                           options.group_key.size());
  }
  std::memcpy(options.group_key.data(), key.data(), key.size());
  options.hang_limit = FromSeconds(begin.hang_seconds());
  options.ranks_on_host = std::max(1, begin.ranks_on_host());
  options.cores_on_host = cores;
  options.recorded_operations = kRecordedOperations;
  options.islands = IslandsOf(begin.start().plan());
  return options;
}

}  // namespace troupe
