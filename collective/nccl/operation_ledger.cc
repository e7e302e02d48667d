#include "collective/nccl/operation_ledger.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

namespace troupe {

StatusOr<int> OperationLedger::Issue(CollectiveOperation operation, size_t bytes, Purpose purpose) {
  const std::lock_guard lock(mutex_);
  const Key key(operation, purpose, bytes);
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    TROUPE_ASSIGN_OR_RETURN(const int mark, device_.MakeMark());
    found = entries_.emplace(key, Entry{.mark = mark}).first;
  }
  found->second.last_issued = ++issued_;
  return found->second.mark;
}

std::string OperationLedger::Describe(CollectiveOperation operation, Purpose purpose) const {
  return fmt::format("{} of axis {}, purpose {}, group {}", Name(operation), group_.axis(),
                     Name(purpose), group_.name());
}

Status OperationLedger::CheckHang(MonotonicTime now, Duration limit) {
  const std::lock_guard lock(mutex_);
  for (auto& [key, entry] : entries_) {
    const NcclDevice::Progress progress = device_.Read(entry.mark);
    if (progress.begun != entry.seen.begun || progress.over != entry.seen.over ||
        progress.over == progress.begun) {
      entry.seen = progress;
      entry.since = now;
      continue;
    }
    if (now - entry.since < limit) continue;
    const auto& [operation, purpose, bytes] = key;
    return DeadlineExceeded(
        "{}: run {} of its operations with {} bytes, last issued as operation {} of the group, has "
        "not completed for {:.1f} s on the device",
        Describe(operation, purpose), progress.begun, bytes, entry.last_issued,
        ToSeconds(now - entry.since));
  }
  return OkStatus();
}

void OperationLedger::AddTo(std::vector<DeviceCollectiveStatistics>* statistics) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, entry] : entries_) {
    const auto& [operation, purpose, bytes] = key;
    const NcclDevice::Progress progress = device_.Read(entry.mark);
    if (progress.begun == 0) continue;
    auto found =
        std::ranges::find_if(*statistics, [&, what = operation, why = purpose](const auto& line) {
          return line.operation == what && line.purpose == why && line.axis == group_.axis() &&
                 line.scope == group_.scope();
        });
    if (found == statistics->end()) {
      found = statistics->insert(found, {.operation = operation,
                                         .axis = group_.axis(),
                                         .scope = group_.scope(),
                                         .purpose = purpose});
    }
    const auto count = static_cast<double>(progress.over);
    found->count += progress.over;
    found->bytes += progress.over * bytes;
    found->bus_bytes += BusBytes(operation, count * static_cast<double>(bytes), group_.size());
    found->seconds += progress.seconds;
  }
}

CollectiveFlight OperationLedger::Flight(MonotonicTime now) const {
  const std::lock_guard lock(mutex_);
  const std::span<const int> ranks = group_.global_ranks();
  CollectiveFlight flight;
  flight.group = group_.name() + " (NCCL)";
  flight.axis = group_.axis();
  flight.ranks.assign(ranks.begin(), ranks.end());
  bool blocked = false;
  for (const auto& [key, entry] : entries_) {
    const auto& [operation, purpose, bytes] = key;
    const NcclDevice::Progress progress = device_.Read(entry.mark);
    flight.entered += progress.begun;
    if (progress.over == progress.begun) continue;
    const bool seen = progress.begun == entry.seen.begun && progress.over == entry.seen.over;
    flight.operation = operation;
    flight.purpose = purpose;
    flight.bytes = bytes;
    flight.waited = seen ? now - entry.since : Duration::zero();
    blocked = true;
  }
  // Operations run one after another, so the one in flight is the last begun.
  if (blocked) flight.blocked_in = flight.entered;
  return flight;
}

nlohmann::ordered_json OperationLedger::ToJson() const {
  const std::lock_guard lock(mutex_);
  nlohmann::ordered_json operations = nlohmann::ordered_json::array();
  for (const auto& [key, entry] : entries_) {
    const auto& [operation, purpose, bytes] = key;
    const NcclDevice::Progress progress = device_.Read(entry.mark);
    operations.push_back({{"operation", Name(operation)},
                          {"purpose", Name(purpose)},
                          {"bytes", bytes},
                          {"begun", progress.begun},
                          {"over", progress.over}});
  }
  return {{"group", group_.name()},
          {"axis", group_.axis()},
          {"issued", issued_},
          {"operations", std::move(operations)}};
}

}  // namespace troupe
