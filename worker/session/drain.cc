#include "worker/session/drain.h"

#include <algorithm>
#include <utility>

#include "base/deadline.h"
#include "base/status.h"
#include "worker/session/outbox.h"

namespace troupe::session {
namespace {

// A daemon ends this long before its deadline, so that its goodbye arrives and its ranks are gone.
constexpr Duration kEndsBeforeDeadline = std::chrono::seconds(2);

bool HasRanks(const State& state) {
  return std::any_of(state.devices.begin(), state.devices.end(), [](const Device& device) {
    return !device.job.empty() || device.next.has_value();
  });
}

}  // namespace

void OnDrain(State& state, const Drain& drain, MonotonicTime now, Effects& effects) {
  const Duration left = std::max<Duration>(drain.limit - kEndsBeforeDeadline, Duration::zero());
  if (state.drain && state.drain->end <= now + left) return;
  state.drain = DrainState{drain.reason, now + left};
  // Then there is nothing to move, or no time for it.
  if (!HasRanks(state) || left == Duration::zero()) return;
  effects.push_back(
      Note{fmt::format("{}: the jobs that it runs have {:.0f} s to move to other "
                       "workers",
                       drain.reason, ToSeconds(left))});
  ReportDrain(state, now, effects);
}

v1::Draining DrainingOf(const State& state, MonotonicTime now) {
  v1::Draining draining;
  draining.set_reason(state.drain->reason);
  draining.set_seconds_left(std::max(0.0, ToSeconds(state.drain->end - now)));
  return draining;
}

void ReportDrain(State& state, MonotonicTime now, Effects& effects) {
  if (!state.drain) return;
  v1::WorkerMessage message;
  *message.mutable_draining() = DrainingOf(state, now);
  Send(state, effects, std::move(message));
}

std::optional<MonotonicTime> DrainEnd(const State& state) {
  if (!state.drain) return std::nullopt;
  return HasRanks(state) ? state.drain->end : kAtOnce;
}

}  // namespace troupe::session
