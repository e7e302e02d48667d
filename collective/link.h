// The kind of link between two ranks. Pure.
#ifndef TROUPE_COLLECTIVE_LINK_H_
#define TROUPE_COLLECTIVE_LINK_H_

#include <cstdint>
#include <string>

#include "base/status.h"

namespace troupe {

enum class LinkKind : uint8_t { kOther, kProcessMemory, kSharedMemory, kTcp, kRdma };

struct Link {
  LinkKind kind = LinkKind::kOther;
  std::string device;  // "posix", "eth0", "mlx5_0:1"
};

// "shared memory (posix)", "TCP (eth0)", "RDMA (mlx5_0:1)".
inline std::string ToText(const Link& link) {
  switch (link.kind) {
    case LinkKind::kProcessMemory:
      return "memory of one process";
    case LinkKind::kSharedMemory:
      return fmt::format("shared memory ({})", link.device);
    case LinkKind::kTcp:
      return fmt::format("TCP ({})", link.device);
    case LinkKind::kRdma:
      return fmt::format("RDMA ({})", link.device);
    case LinkKind::kOther:
      break;
  }
  return link.device.empty() ? "unknown" : link.device;
}

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_LINK_H_
