#include "worker/rank/rank_trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace troupe {
namespace {

constexpr int64_t kEveryStep = std::numeric_limits<int64_t>::max();

class Names {
 public:
  explicit Names(v1::RankTrace* trace) : trace_(trace) {}
  int32_t IndexOf(const std::string& name) {
    const auto [place, added] = indices_.emplace(name, trace_->names_size());
    if (added) trace_->add_names(name);
    return place->second;
  }
  // Equal pointers mean equal names.
  int32_t IndexOf(const char* name) {
    const auto known = pointers_.find(name);
    if (known != pointers_.end()) return known->second;
    return pointers_[name] = IndexOf(std::string(name));
  }

 private:
  v1::RankTrace* const trace_;
  std::map<std::string, int32_t> indices_;
  std::unordered_map<const char*, int32_t> pointers_;
};

std::string NameOf(const TracedInterval& interval) {
  const auto action = [&](std::string_view letter) {
    return fmt::format("{}{}.{}", letter, interval.chunk, interval.microbatch);
  };
  switch (interval.phase) {
    case Phase::kIdle:
      return fmt::format("step {}", interval.step);
    case Phase::kReadBatch:
      return "read batch";
    case Phase::kUnshard:
      return "unshard";
    case Phase::kReceive:
      return action("receive ");
    case Phase::kForward:
      return action("F");
    case Phase::kBackward:
      return action("B");
    case Phase::kInputGradient:
      return action("I");
    case Phase::kWeightGradient:
      return action("W");
    case Phase::kWaitSends:
      return "wait for sends";
    case Phase::kReduce:
      return "reduce";
    case Phase::kUpdate:
      return "update";
    case Phase::kValidate:
      return "validate";
    case Phase::kCheckpoint:
      return "wait for checkpoint";
    case Phase::kSaving:
      return "write checkpoint";
    case Phase::kWaitResult:
      return "wait for result";
    case Phase::kBuild:
    case Phase::kConnect:
    case Phase::kLoad:
    case Phase::kWaitTicket:
      break;
  }
  return "between steps";
}

v1::TraceEvent::Kind KindOf(Phase phase) {
  if (phase == Phase::kIdle) return v1::TraceEvent::STEP;
  if (phase == Phase::kCheckpoint || phase == Phase::kSaving) return v1::TraceEvent::CHECKPOINT;
  return v1::TraceEvent::ACTION;
}

int64_t Nanoseconds(MonotonicTime time) { return time.time_since_epoch().count(); }

void SetTimes(MonotonicTime begin, MonotonicTime end, v1::TraceEvent* event) {
  event->set_begin_ns(Nanoseconds(begin));
  event->set_duration_ns((end - begin).count());
}

}  // namespace

v1::RankTrace MakeRankTrace(const StepTrace& trace, const TracedCollectives& collectives,
                            int64_t first_step, int64_t last_step) {
  const StepTrace::Snapshot taken = trace.Capture(0, kEveryStep);
  v1::RankTrace result;
  Names names(&result);
  // Steps that began before the oldest recorded collective may lack some.
  int64_t first_held = taken.first_held_step;
  if (!collectives.complete) {
    const MonotonicTime oldest = collectives.operations.empty()
                                     ? MonotonicTime::max()
                                     : collectives.operations.front().issued;
    for (const TracedInterval& interval : taken.intervals) {
      if (interval.phase == Phase::kIdle && interval.begin < oldest) {
        first_held = std::max(first_held, interval.step + 1);
      }
    }
  }
  result.set_first_held_step(first_held);
  result.set_last_held_step(taken.last_held_step);
  result.set_dropped_operations(taken.dropped_operations);
  first_step = std::max(first_step, first_held);
  last_step = std::min(last_step, taken.last_held_step);
  std::vector<TracedInterval> steps;
  for (const TracedInterval& interval : taken.intervals) {
    if (interval.step < first_step || interval.step > last_step) continue;
    if (interval.phase == Phase::kIdle) steps.push_back(interval);
    v1::TraceEvent* const event = result.add_events();
    event->set_kind(KindOf(interval.phase));
    event->set_name(names.IndexOf(NameOf(interval)));
    event->set_step(interval.step);
    event->set_chunk(interval.chunk);
    event->set_microbatch(interval.microbatch);
    SetTimes(interval.begin, interval.end, event);
  }
  for (const TracedOperation& operation : taken.operations) {
    if (operation.step < first_step || operation.step > last_step) continue;
    v1::TraceEvent* const event = result.add_events();
    event->set_kind(v1::TraceEvent::OPERATION);
    event->set_name(names.IndexOf(operation.name));
    event->set_step(operation.step);
    SetTimes(operation.begin, operation.end, event);
  }
  size_t at = 0;
  for (const RecordedOperation& operation : collectives.operations) {
    while (at < steps.size() && steps[at].end <= operation.issued) ++at;
    if (at == steps.size()) break;
    if (operation.issued < steps[at].begin) continue;
    v1::TraceEvent* const event = result.add_events();
    event->set_kind(v1::TraceEvent::COLLECTIVE);
    event->set_name(names.IndexOf(std::string(Name(operation.operation))));
    event->set_lane(names.IndexOf(fmt::format("{} ({})", operation.axis, Name(operation.purpose))));
    event->set_step(steps[at].step);
    event->set_bytes(static_cast<int64_t>(operation.bytes));
    event->set_exposed_ns(operation.exposed.count());
    SetTimes(operation.issued, operation.finished, event);
  }
  return result;
}

Status CheckHeld(const v1::RankTrace& trace, int64_t first_step, int64_t last_step) {
  if (trace.first_held_step() > trace.last_held_step()) {
    return FailedPrecondition("rank {} has no record of steps of start {} of the ranks",
                              trace.rank(), trace.group_epoch());
  }
  if (first_step >= trace.first_held_step() && last_step <= trace.last_held_step()) {
    return OkStatus();
  }
  return FailedPrecondition(
      "rank {} has a record of steps {} to {} of start {} of the ranks, not of {} to {}",
      trace.rank(), trace.first_held_step(), trace.last_held_step(), trace.group_epoch(),
      first_step, last_step);
}

v1::RankTrace OnlySteps(const v1::RankTrace& trace, int64_t first_step, int64_t last_step) {
  v1::RankTrace kept = trace;
  kept.clear_events();
  for (const v1::TraceEvent& event : trace.events()) {
    if (event.step() >= first_step && event.step() <= last_step) *kept.add_events() = event;
  }
  return kept;
}

std::string RankTracePath(const std::string& log_path) {
  return log_path.substr(0, log_path.rfind('.')) + ".trace";
}

}  // namespace troupe
