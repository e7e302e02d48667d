#include "worker/rank/flight_files.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace troupe {
namespace {

constexpr std::string_view kEnd = ".flight.json";

std::string Begin(const std::string& log) { return log.substr(0, log.rfind('.')) + ".epoch-"; }

std::optional<uint64_t> EpochOf(std::string_view name, const std::string& begin) {
  if (!name.starts_with(begin) || !name.ends_with(kEnd)) return std::nullopt;
  name.remove_prefix(begin.size());
  name.remove_suffix(std::min(name.size(), kEnd.size()));
  uint64_t epoch = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), epoch);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return epoch;
}

}  // namespace

std::string FlightRecordPath(const std::string& log_path, uint64_t group_epoch) {
  return fmt::format("{}{}{}", Begin(log_path), group_epoch, kEnd);
}

std::vector<std::string> FlightRecordsToDrop(const std::vector<std::string>& names,
                                             const std::string& log_name) {
  std::vector<std::pair<uint64_t, std::string>> records;
  for (const std::string& name : names) {
    if (const auto epoch = EpochOf(name, Begin(log_name))) records.emplace_back(*epoch, name);
  }
  std::sort(records.begin(), records.end());
  std::vector<std::string> dropped;
  for (size_t i = 1; i + kNewestFlightRecords < records.size(); ++i) {
    dropped.push_back(records[i].second);
  }
  return dropped;
}

void DropFlightRecords(FileSystem& files, const std::string& log_path) {
  const std::string folder = ParentDirectory(log_path);
  const auto entries = files.List(folder);
  if (!entries.ok()) return;
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : *entries) names.push_back(entry.name);
  const std::string log_name = log_path.substr(log_path.rfind('/') + 1);
  for (const std::string& name : FlightRecordsToDrop(names, log_name)) {
    const Status removed = files.Remove(JoinPath(folder, name));
    if (!removed.ok()) LogWarning("rank", "{}: {}", name, ToString(removed));
  }
}

}  // namespace troupe
