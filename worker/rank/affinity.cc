#include "worker/rank/affinity.h"

#include <sched.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <set>
#include <string>

namespace troupe {
namespace {

// Returns NOT_FOUND if the thread has ended.
Status Pin(int thread, const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  if (sched_setaffinity(thread, sizeof(set), &set) == 0) return OkStatus();
  if (errno == ESRCH) return NotFound("thread {} has ended", thread);
  return ErrnoStatus(errno, "sched_setaffinity");
}

std::vector<int> ThreadsOfThisProcess() {
  std::vector<int> threads;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const std::string name = entry.path().filename();
    int thread = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), thread);
    if (read.ec == std::errc()) threads.push_back(thread);
  }
  return threads;
}

}  // namespace

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

Status PinThisProcess(const std::vector<int>& cores) {
  std::set<int> pinned;
  while (true) {
    const size_t before = pinned.size();
    for (const int thread : ThreadsOfThisProcess()) {
      if (pinned.contains(thread)) continue;
      const Status status = Pin(thread, cores);
      if (!status.ok() && status.code() != StatusCode::kNotFound) return status;
      pinned.insert(thread);
    }
    // The next pass finds threads that a thread started before it was bound itself.
    if (pinned.size() == before) return OkStatus();
  }
}

}  // namespace troupe
