// The last operations of a network, to show after a failure what each rank was doing. Bounded: a
// new record overwrites the oldest one. Not thread-safe.
#ifndef TROUPE_COLLECTIVE_FLIGHT_RECORDER_H_
#define TROUPE_COLLECTIVE_FLIGHT_RECORDER_H_

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "collective/algorithm/operation.h"
#include "collective/group.h"

namespace troupe::collective_internal {

enum class RecordState : uint8_t { kPending, kFinished, kFailed };

struct Record {
  const Group* group = nullptr;  // must outlive the recorder
  uint64_t sequence = 0;
  size_t bytes = 0;
  MonotonicTime issued;
  MonotonicTime finished;  // valid unless pending
  CollectiveOperation operation = CollectiveOperation::kBarrier;
  Purpose purpose = Purpose::kControl;
  RecordState state = RecordState::kPending;
  std::vector<int> awaited;  // global ranks that a failed operation waited for
  Duration exposed{};        // time for which the caller was blocked in it
};

class FlightRecorder {
 public:
  // REQUIRES: capacity >= 1.
  explicit FlightRecorder(size_t capacity) : records_(capacity) {}

  // Returns the number of the record, for Finish.
  uint64_t Issue(const Record& record) {
    records_[next_ % records_.size()] = record;
    return next_++;
  }

  // No effect if the record has been overwritten.
  void Finish(uint64_t number, MonotonicTime now, RecordState state,
              std::vector<int> awaited = {}) {
    if (next_ - number > records_.size()) return;
    Record& record = records_[number % records_.size()];
    record.finished = now;
    record.state = state;
    record.awaited = std::move(awaited);
  }

  // Adds to the exposed time of a record. No effect if the record has been overwritten.
  void AddExposed(uint64_t number, Duration time) {
    if (next_ - number <= records_.size()) records_[number % records_.size()].exposed += time;
  }

  // Calls `visit` with the kept records, oldest first.
  void ForEach(const std::function<void(const Record&)>& visit) const;
  // Whether records have been overwritten.
  bool has_forgotten() const { return next_ > records_.size(); }

  // The newest records as the value of "operations" in CollectiveNetwork::FlightRecorderJson: a
  // JSON array, oldest first. `awaited` returns the global ranks that a pending record waits for.
  nlohmann::ordered_json ToJson(
      MonotonicTime start, const std::function<std::vector<int>(uint64_t number)>& awaited) const;

 private:
  std::vector<Record> records_;
  uint64_t next_ = 0;
};

}  // namespace troupe::collective_internal

#endif  // TROUPE_COLLECTIVE_FLIGHT_RECORDER_H_
