#include "worker/rank/affinity.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>

namespace troupe {

std::vector<int> CoresOfRank(const std::vector<int>& allowed, int ranks, int index, int threads) {
  const int cores = static_cast<int>(allowed.size());
  if (ranks * threads < cores) return allowed;
  std::vector<int> mine;
  for (int t = 0; t < std::min(threads, cores); ++t)
    mine.push_back(allowed[(index * threads + t) % cores]);
  return mine;
}

std::vector<int> AllowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

Status PinThisThread(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores) CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) return ErrnoStatus(errno, "sched_setaffinity");
  return OkStatus();
}

}  // namespace troupe
