#include "worker/rank/rank_links.h"

#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

namespace troupe {
namespace {

constexpr const char* kRdmaDevices = "/sys/class/infiniband";

// A worker that reports no host counts as a host of its own.
const std::string& HostOf(const v1::Plan& plan, int rank) {
  const v1::RankPlacement& placement = plan.ranks(rank);
  return placement.host().empty() ? placement.worker() : placement.host();
}

}  // namespace

std::vector<std::string> LinkTexts(const std::map<int, Link>& links) {
  std::set<std::string> texts;
  for (const auto& [rank, link] : links) texts.insert(ToText(link));
  return {texts.begin(), texts.end()};
}

std::vector<std::string> LinkFallbacks(const std::map<int, Link>& links, const v1::Plan& plan,
                                       int rank, bool has_rdma) {
  std::vector<std::string> lines;
  for (const auto& [peer, link] : links) {
    const bool same_host = HostOf(plan, peer) == HostOf(plan, rank);
    const bool in_memory =
        link.kind == LinkKind::kSharedMemory || link.kind == LinkKind::kProcessMemory;
    const bool lacks_rdma = !same_host && has_rdma && link.kind != LinkKind::kRdma;
    if (same_host ? in_memory : !lacks_rdma) continue;
    lines.push_back(
        fmt::format("transport to rank {}: {}, not {}", peer, ToText(link),
                    same_host ? "shared memory, within a host" : "RDMA, between hosts"));
  }
  return lines;
}

bool HasRdmaDevices() {
  std::error_code error;
  const std::filesystem::directory_iterator devices(kRdmaDevices, error);
  return !error && devices != std::filesystem::directory_iterator();
}

}  // namespace troupe
