#include "worker/daemon/core_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

namespace troupe {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The node to which the thread's directory has a link; 0 if the kernel has no nodes.
int NodeOf(int thread) {
  const std::string directory = fmt::format("/sys/devices/system/cpu/cpu{}", thread);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    int node = 0;
    if (!name.starts_with("node")) continue;
    const auto [end, failed] = std::from_chars(name.data() + 4, name.data() + name.size(), node);
    if (failed == std::errc() && end == name.data() + name.size()) return node;
  }
  return 0;
}

}  // namespace

std::vector<int> ParseCoreList(const std::string& text) {
  constexpr int kThreadsMax = 1 << 16;
  std::vector<int> threads;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end && *at != '\n') {
    int first = 0;
    auto read = std::from_chars(at, end, first);
    if (read.ec != std::errc()) return {};
    int last = first;
    if (read.ptr != end && *read.ptr == '-') {
      read = std::from_chars(read.ptr + 1, end, last);
      if (read.ec != std::errc()) return {};
    }
    if (first < 0 || last < first || last >= kThreadsMax) return {};
    for (int thread = first; thread <= last; ++thread) threads.push_back(thread);
    at = read.ptr != end && *read.ptr == ',' ? read.ptr + 1 : read.ptr;
    if (at == read.ptr && at != end && *at != '\n') return {};
  }
  return threads;
}

std::vector<std::vector<int>> CoresOfHost(const std::vector<int>& online,
                                          const std::function<std::string(int thread)>& siblings,
                                          const std::function<int(int thread)>& node) {
  std::vector<std::pair<int, std::vector<int>>> cores;
  std::set<int> placed;
  for (const int thread : online) {
    if (placed.contains(thread)) continue;
    std::vector<int> core;
    for (const int other : ParseCoreList(siblings(thread))) {
      if (std::find(online.begin(), online.end(), other) != online.end()) core.push_back(other);
    }
    if (std::find(core.begin(), core.end(), thread) == core.end()) core = {thread};
    std::sort(core.begin(), core.end());
    placed.insert(core.begin(), core.end());
    cores.emplace_back(node(thread), std::move(core));
  }
  std::sort(cores.begin(), cores.end());
  std::vector<std::vector<int>> ordered;
  for (auto& [place, core] : cores) ordered.push_back(std::move(core));
  return ordered;
}

std::vector<std::vector<int>> ProbeHostCores() {
  return CoresOfHost(
      ParseCoreList(ReadText("/sys/devices/system/cpu/online")),
      [](int thread) {
        return ReadText(
            fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", thread));
      },
      NodeOf);
}

}  // namespace troupe
