#include "worker/rank/network_options.h"

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

// Operations recorded for traces: enough for several dozen steps of a large model on several axes.
constexpr int kRecordedOperations = 16384;

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
  return options;
}

}  // namespace troupe
