#include "coordinator/machine/drained_workers.h"

#include <algorithm>
#include <string>

#include "base/text/printable.h"
#include "coordinator/job/job_messages.h"
#include "coordinator/machine/views.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

constexpr size_t kReasonBytesMax = 256;
constexpr size_t kMostDrains = 10'000;
constexpr auto kDrainsInterval = std::chrono::minutes(1);

// A reason is a part of a line, in lists and in logs.
Status CheckReason(const std::string& reason) {
  if (reason.size() > kReasonBytesMax) {
    return RefuseField(StatusCode::kInvalidArgument, "reason", "has {} bytes, must have at most {}",
                       reason.size(), kReasonBytesMax);
  }
  const std::string fault = TextFault(reason);
  if (fault.empty()) return OkStatus();
  return RefuseField(StatusCode::kInvalidArgument, "reason",
                     "is \"{}\", which {}, must be one line of text", reason, fault);
}

// A worker that the coordinator has forgotten is known while an operator drains it.
Status CheckKnown(const std::string& name, const CoordinatorState& state) {
  if (state.fleet.workers.contains(name) || state.fleet.drains.contains(name)) return OkStatus();
  return RefuseField(StatusCode::kNotFound, "name", "is \"{}\": there is no such worker",
                     Shortened(name));
}

Status CheckRoom(const std::string& name, const CoordinatorState& state) {
  if (state.fleet.drains.size() < kMostDrains || state.fleet.drains.contains(name))
    return OkStatus();
  return ResourceExhausted(
      "operators drain {} workers, must be at most {}: end the orders for workers that do not "
      "return (UndrainWorker)",
      state.fleet.drains.size(), kMostDrains);
}

void ReplyWithWorker(const std::string& name, CallId call, const CoordinatorState& state,
                     Turn& turn) {
  const Worker* const known = FindWorker(name, state.fleet);
  Worker forgotten;
  forgotten.name = name;
  turn.effects.replies.push_back(
      {call, OkStatus(), DescribeWorker(state, known != nullptr ? *known : forgotten, {})});
}

}  // namespace

void DrainWorker(const DrainWorkerCall& event, CoordinatorState& state, Turn& turn) {
  const std::string& name = event.request.name();
  if (const Status known = CheckKnown(name, state); !known.ok())
    return ReplyWithError(event.call, known, turn);
  const std::string& reason = event.request.reason();
  if (const Status fits = CheckReason(reason); !fits.ok())
    return ReplyWithError(event.call, fits, turn);
  if (const Status room = CheckRoom(name, state); !room.ok())
    return ReplyWithError(event.call, room, turn);
  v1::DrainRecord& record = state.fleet.drains[name];
  const bool is_new = record.worker().empty();
  const bool changes = is_new || (!reason.empty() && record.reason() != reason);
  record.set_worker(name);
  if (is_new) record.set_since_wall_time_ns(turn.wall_ns);
  if (!reason.empty()) record.set_reason(reason);
  if (changes) turn.effects.writes.PutDrain(record);
  turn.reschedule = true;
  ReplyWithWorker(name, event.call, state, turn);
}

void UndrainWorker(const UndrainWorkerCall& event, CoordinatorState& state, Turn& turn) {
  const std::string& name = event.request.name();
  if (const Status known = CheckKnown(name, state); !known.ok())
    return ReplyWithError(event.call, known, turn);
  if (state.fleet.drains.erase(name) != 0) turn.effects.writes.DeleteDrain(name);
  turn.reschedule = true;
  ReplyWithWorker(name, event.call, state, turn);
}

std::optional<MonotonicTime> NextTimeToEndDrains(const CoordinatorState& state) {
  if (state.fleet.drains.empty()) return std::nullopt;
  return state.drains_time;
}

void EndForgottenDrains(CoordinatorState& state, Turn& turn) {
  if (state.fleet.drains.empty() || turn.now < state.drains_time) return;
  state.drains_time = turn.now + kDrainsInterval;
  for (auto entry = state.fleet.drains.begin(); entry != state.fleet.drains.end();) {
    auto& [name, record] = *entry;
    const bool is_forgotten = !state.fleet.workers.contains(name);
    const int64_t since = record.forgotten_wall_time_ns();
    if (is_forgotten && since != 0 && turn.wall_ns - since >= kForgottenDrainLimit.count()) {
      turn.effects.writes.DeleteDrain(name);
      turn.effects.notes.push_back(fmt::format(
          "worker \"{}\" has not returned for 7 days: the order to drain it ends", name));
      entry = state.fleet.drains.erase(entry);
      continue;
    }
    if (is_forgotten != (since != 0)) {
      record.set_forgotten_wall_time_ns(is_forgotten ? std::max<int64_t>(turn.wall_ns, 1) : 0);
      turn.effects.writes.PutDrain(record);
    }
    ++entry;
  }
}

}  // namespace troupe
