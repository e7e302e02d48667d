#include "base/program/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>

namespace troupe {
namespace {

constexpr rlim_t kMost = 1 << 20;

}  // namespace

int RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    const rlim_t wanted = std::min(limit.rlim_max, kMost);
    if (limit.rlim_cur < wanted) {
      limit.rlim_cur = wanted;
      // Only a sandbox refuses this; the limit then stays unchanged.
      setrlimit(RLIMIT_NOFILE, &limit);
    }
  }
  return DescriptorLimit();
}

int DescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  return static_cast<int>(std::min(limit.rlim_cur, kMost));
}

}  // namespace troupe
