// Reports of an engine on its operations: statistics, records, and the progress in each group.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "collective/device_statistics.h"
#include "collective/engine.h"

namespace troupe::collective_internal {

std::string Engine::FlightRecorderJson(std::string_view device) const {
  const Lock lock = LockMutex();
  const auto awaited = [this](uint64_t number) {
    for (const ActiveOperation* operation : active_) {
      if (operation->record == number) return AwaitedGlobalRanks(*operation);
    }
    return std::vector<int>();
  };
  nlohmann::ordered_json json = {{"rank", options_.rank},
                                 {"group_epoch", options_.group_epoch},
                                 {"status", ToString(abort_status())},
                                 {"operations", recorder_.ToJson(made_, awaited)}};
  if (!device.empty()) json["device"] = nlohmann::ordered_json::parse(device, nullptr, false);
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void Engine::AddStatistics(const Group& group,
                           std::vector<CollectiveStatistics>* statistics) const {
  const Lock lock = LockMutex();
  for (int o = 0; o < kCollectiveOperations; ++o) {
    for (int p = 0; p < kPurposes; ++p) {
      const Totals& totals = group.totals[static_cast<size_t>(o)][static_cast<size_t>(p)];
      if (totals.count == 0) continue;
      const auto operation = static_cast<CollectiveOperation>(o);
      const auto purpose = static_cast<Purpose>(p);
      auto entry = std::find_if(
          statistics->begin(), statistics->end(), [&](const CollectiveStatistics& candidate) {
            return candidate.operation == operation && candidate.purpose == purpose &&
                   candidate.axis == group.axis && candidate.scope == group.scope;
          });
      if (entry == statistics->end()) {
        statistics->push_back(
            {.operation = operation, .axis = group.axis, .scope = group.scope, .purpose = purpose});
        entry = std::prev(statistics->end());
      }
      entry->count += totals.count;
      entry->bytes += totals.bytes;
      entry->bus_bytes += BusBytes(operation, static_cast<double>(totals.bytes), group.size());
      entry->seconds += static_cast<double>(totals.nanoseconds) * 1e-9;
      for (size_t i = 0; i < totals.duration_counts.size(); ++i) {
        entry->duration_counts[i] += totals.duration_counts[i];
      }
    }
  }
}

std::array<PurposeSeconds, kPurposes> Engine::SecondsByPurpose() const {
  const Lock lock = LockMutex();
  std::array<PurposeSeconds, kPurposes> seconds;
  for (size_t p = 0; p < seconds.size(); ++p) {
    seconds[p] = {ToSeconds(total_by_purpose_[p]), ToSeconds(exposed_by_purpose_[p])};
  }
  return seconds;
}

CollectiveFlight Engine::FlightIn(const ActiveOperation& operation, MonotonicTime now) {
  return {.blocked_in = operation.sequence + 1,
          .operation = operation.operation,
          .purpose = operation.purpose,
          .bytes = operation.bytes,
          .waited = now - operation.issued};
}

CollectiveFlight Engine::FlightOf(const Group& group) const {
  const Lock lock = LockMutex();
  CollectiveFlight flight;
  const auto waited_for = std::find_if(active_.begin(), active_.end(), [&](const auto* operation) {
    return operation->group == &group && operation->waited_for;
  });
  if (waited_for != active_.end()) {
    flight = FlightIn(**waited_for, std::chrono::steady_clock::now());
  } else if (group.aborted_flight) {
    flight = *group.aborted_flight;
  }
  flight.group = group.name;
  flight.axis = group.axis;
  flight.ranks = group.global_ranks;
  flight.entered = group.next_sequence;
  return flight;
}

std::set<int> Engine::UnreachedRanks() const {
  const Lock lock = LockMutex();
  return unreached_;
}

std::vector<RecordedOperation> Engine::RecordedOperations(bool* complete) const {
  const Lock lock = LockMutex();
  *complete = !recorder_.has_forgotten();
  std::vector<RecordedOperation> operations;
  recorder_.ForEach([&](const Record& record) {
    if (record.state != RecordState::kFinished) return;
    operations.push_back({.operation = record.operation,
                          .purpose = record.purpose,
                          .axis = record.group->axis,
                          .bytes = record.bytes,
                          .issued = record.issued,
                          .finished = record.finished,
                          .exposed = record.exposed});
  });
  return operations;
}

}  // namespace troupe::collective_internal
