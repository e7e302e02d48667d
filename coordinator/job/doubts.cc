#include "coordinator/job/doubts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "coordinator/faults/host_faults.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/kept_checkpoints.h"
#include "coordinator/state/event_kind.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/transition.h"

namespace troupe {
namespace {

// Slowest read rate to wait for; after that the next reader is asked.
constexpr double kSlowestBytesPerSecond = 50e6;
// Bounds the readers asked in a large fleet, in which few may mount the folder. The doubting worker
// itself is asked last.
constexpr size_t kOtherReadersMax = 4;

std::string HostOf(const std::string& worker, const Turn& turn) {
  const Worker* const found = FindWorker(worker, turn.fleet);
  return found == nullptr ? worker : found->hello.host();
}

bool RanOn(const Job& job, const std::string& worker) {
  const auto& ranks = job.last_group.ranks();
  return std::any_of(ranks.begin(), ranks.end(), [&](const v1::RankPlacement& placement) {
    return placement.worker() == worker;
  });
}

// Returns the best reader not asked yet, or null. A host other than the doubting worker's is
// preferred, then another worker, then a worker of the job.
const Worker* NextReader(const Job& job, const v1::CheckpointRecord& record,
                         const DoubtReading& reading, const Turn& turn) {
  const std::string doubting_host = HostOf(record.doubted_by(), turn);
  const bool others_asked = reading.asked.size() >= kOtherReadersMax;
  const Worker* best = nullptr;
  int best_rank = -1;
  for (const auto& [name, worker] : turn.fleet.workers) {
    if (worker.session == 0 || reading.asked.contains(name)) continue;
    if (others_asked && name != record.doubted_by()) continue;
    const int rank = (worker.hello.host() != doubting_host ? 4 : 0) +
                     (name != record.doubted_by() ? 2 : 0) + (RanOn(job, name) ? 1 : 0);
    if (rank > best_rank) {
      best = &worker;
      best_rank = rank;
    }
  }
  return best;
}

void AskNextReader(Job& job, int64_t number, Turn& turn) {
  const v1::CheckpointRecord& record = job.checkpoints.at(number);
  DoubtReading& reading = job.doubt_readings[number];
  const Worker* const reader = NextReader(job, record, reading, turn);
  if (reader == nullptr) {
    RecordEvent(job, event::kCheckpointDoubtOpen,
                fmt::format("{}: no worker could read it to confirm or refute what {} found: {}",
                            record.path(), record.doubted_by(), record.doubt()),
                turn);
    job.doubt_readings.erase(number);
    turn.reschedule = true;
    return;
  }
  reading.asked.insert(reader->name);
  reading.reader = LifeOf(*reader);
  reading.session = reader->session;
  reading.deadline = turn.now + turn.limits().startup_allowance +
                     FromSeconds(static_cast<double>(record.bytes()) / kSlowestBytesPerSecond);
  reading.look = turn.now + turn.limits().lease;
  SendToWorker(reader->name, VerificationOf(job, record), turn);
}

Transition QuarantineDoubted(Job& job, int64_t number, const std::string& second,
                             const std::string& reason, Turn& turn) {
  const v1::CheckpointRecord record = job.checkpoints.at(number);
  job.doubt_readings.erase(number);
  Quarantine(job, record.path(),
             second == record.doubted_by() ? fmt::format("{} read it twice: {}", second, reason)
                                           : fmt::format("{} and {} found it damaged: {}",
                                                         record.doubted_by(), second, reason),
             turn);
  turn.reschedule = true;
  return CommitQuarantined{};
}

void Refute(Job& job, int64_t number, const std::string& reader, Turn& turn) {
  const v1::CheckpointRecord& record = job.checkpoints.at(number);
  LayWrongReading(job, record,
                  fmt::format("{}: {} found it intact; {} had found: {}", record.path(), reader,
                              record.doubted_by(), record.doubt()),
                  turn);
  EndDoubt(job, number, reader, turn);
}

}  // namespace

Transition DoubtCommit(Job& job, const std::string& path, const std::string& reason,
                       const std::string& worker, Turn& turn) {
  for (auto& [number, record] : job.checkpoints) {
    if (record.path() != path || record.state() != v1::CHECKPOINT_STATE_COMMITTED) continue;
    const bool known = !record.doubted_by().empty();
    if (turn.options.bugs.quarantine_on_one_word) {
      return QuarantineDoubted(job, number, worker, reason, turn);
    }
    if (known && HostOf(record.doubted_by(), turn) != HostOf(worker, turn)) {
      return QuarantineDoubted(job, number, worker, reason, turn);
    }
    if (!known) {
      record.set_doubted_by(worker);
      record.set_doubt(reason);
      record.set_verified(false);
      turn.effects.writes.PutCheckpoint(record);
      RecordEvent(job, event::kCheckpointDoubted, fmt::format("{}: {}: {}", worker, path, reason),
                  turn);
    }
    if (!job.doubt_readings.contains(number)) AskNextReader(job, number, turn);
    return {};
  }
  return {};
}

void EndDoubt(Job& job, int64_t number, const std::string& reader, Turn& turn) {
  v1::CheckpointRecord& record = job.checkpoints.at(number);
  const std::string text = fmt::format("{}: {} found it intact; {} had found: {}", record.path(),
                                       reader, record.doubted_by(), record.doubt());
  job.doubt_readings.erase(number);
  record.clear_doubted_by();
  record.clear_doubt();
  record.set_verified(true);
  turn.effects.writes.PutCheckpoint(record);
  RecordEvent(job, event::kCheckpointDoubtRefuted, text, turn);
  turn.reschedule = true;
}

std::optional<Transition> OnDoubtRead(Job& job, const v1::CheckpointVerified& message,
                                      const std::string& worker, Turn& turn) {
  const auto reading = job.doubt_readings.find(message.attempt());
  if (reading == job.doubt_readings.end() || reading->second.reader.name != worker)
    return std::nullopt;
  const auto found = job.checkpoints.find(message.attempt());
  if (found == job.checkpoints.end() || found->second.path() != message.path()) return std::nullopt;
  const int64_t number = message.attempt();
  if (message.damaged()) return QuarantineDoubted(job, number, worker, message.reason(), turn);
  if (message.ok()) {
    Refute(job, number, worker, turn);
  } else {
    AskNextReader(job, number, turn);
  }
  return Transition();
}

void ForgetGoneDoubts(Job& job) {
  std::erase_if(job.doubt_readings, [&](const auto& reading) {
    const auto found = job.checkpoints.find(reading.first);
    return found == job.checkpoints.end() ||
           found->second.state() != v1::CHECKPOINT_STATE_COMMITTED;
  });
}

void AdvanceDoubts(Job& job, Turn& turn) {
  std::vector<int64_t> next;
  for (auto& [number, reading] : job.doubt_readings) {
    if (turn.now < reading.look) continue;
    const Worker* const reader = FindWorker(reading.reader.name, turn.fleet);
    const bool answers = reader != nullptr && reader->session == reading.session;
    if (answers && turn.now < reading.deadline) {
      reading.look = std::min(reading.deadline, turn.now + turn.limits().lease);
    } else {
      next.push_back(number);
    }
  }
  for (const int64_t number : next) AskNextReader(job, number, turn);
}

std::optional<MonotonicTime> NextDoubtDeadline(const Job& job) {
  std::optional<MonotonicTime> next;
  for (const auto& [number, reading] : job.doubt_readings) next = EarlierOf(next, reading.look);
  return next;
}

std::string AwaitedReading(const Job& job) {
  const v1::CheckpointRecord* const commit = NewestCommit(job);
  if (commit == nullptr) return {};
  const auto reading = job.doubt_readings.find(commit->attempt());
  if (reading == job.doubt_readings.end()) return {};
  const std::string& reader = reading->second.reader.name;
  return fmt::format("{} reads back {}, which {} found damaged",
                     reader.empty() ? "the next worker that connects" : reader, commit->path(),
                     commit->doubted_by());
}

}  // namespace troupe
