#include "worker/session/session_timers.h"

#include <optional>
#include <string_view>
#include <utility>

#include "base/deadline.h"
#include "base/status.h"
#include "worker/session/cores.h"
#include "worker/session/drain.h"
#include "worker/session/lost_link.h"
#include "worker/session/rank_lives.h"

namespace troupe::session {
namespace {

using Due = std::optional<MonotonicTime>;

struct DeviceTimer {
  std::string_view name;
  // When the action is due; absent: it is not in the present state.
  Due (*due)(const Device& device);
  void (*act)(State& state, int device, MonotonicTime now, Effects& effects);
};

struct SessionTimer {
  std::string_view name;
  Due (*due)(const State& state);
  void (*act)(State& state, MonotonicTime now, Effects& effects);
};

Due KillTime(const Device& device, ProcessState process) {
  return device.process == process ? Due(device.kill_at) : std::nullopt;
}

// In the order in which those that are due together act, device by device.
constexpr DeviceTimer kDeviceTimers[] = {
    {"start",
     [](const Device& device) { return MayStart(device) ? Due(device.start_at) : std::nullopt; },
     StartDevice},
    {"late stop", [](const Device& device) { return KillTime(device, ProcessState::kStopping); },
     [](State& state, int device, MonotonicTime, Effects& effects) {
       Kill(state, device, "it did not stop within its limit", effects);
     }},
    {"late start", [](const Device& device) { return KillTime(device, ProcessState::kStarting); },
     [](State& state, int device, MonotonicTime, Effects& effects) {
       ++state.devices[static_cast<size_t>(device)].failed_starts;
       Kill(state, device, "it did not start within its limit", effects);
     }},
};

void EndSilentStream(State& state, MonotonicTime now, Effects& effects) {
  const double seconds = ToSeconds(state.limits.lease);
  NoteReason(
      state,
      state.link == Link::kDialled
          ? fmt::format(
                "cannot reach {}: no answer came within {} s{}; it tries again",
                state.config.cluster, seconds,
                state.config.has_tls ? "" : " (a coordinator with TLS answers only with --tls-dir)")
          : fmt::format("no message came from the coordinator for {} s", seconds),
      now, effects);
  effects.push_back(HangUp{state.stream});
  GoDown(state, now);
}

void DialNow(State& state, MonotonicTime now, Effects& effects) {
  state.link = Link::kDialled;
  state.heard_at = now;
  v1::WorkerMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello = state.config.identity;
  hello.set_leader_epoch_seen(state.leader_epoch);
  for (const auto& [path, image] : state.images) *hello.add_images() = image;
  if (state.drain) *hello.mutable_draining() = DrainingOf(state, now);
  for (const auto& [job, group] : state.groups) {
    if (group.ranks.empty()) continue;
    v1::HeldGroup& held = *hello.add_held();
    held.set_job(job);
    held.set_group_epoch(group.epoch);
    for (const auto& [rank, record] : group.ranks) held.add_ranks(rank);
    held.set_step(group.step);
    held.set_ticket_end_step(group.ticket_end_step);
  }
  effects.push_back(Dial{++state.stream, std::move(message)});
}

void Beat(State& state, MonotonicTime now, Effects& effects) {
  state.heartbeat_at = now + state.limits.heartbeat;
  effects.push_back(SendHeartbeat{state.leader_epoch});
}

// In the order in which those that are due together act, after the devices'.
constexpr SessionTimer kSessionTimers[] = {
    {"silence",
     [](const State& state) {
       return state.link != Link::kDown ? Due(state.heard_at + state.limits.lease) : std::nullopt;
     },
     EndSilentStream},
    {"dial",
     [](const State& state) {
       return state.link == Link::kDown ? Due(state.dial_at) : std::nullopt;
     },
     DialNow},
    {"heartbeat",
     [](const State& state) {
       return state.link == Link::kUp ? Due(state.heartbeat_at) : std::nullopt;
     },
     Beat},
    {"cores", [](const State& state) { return state.cores_stale ? Due(kAtOnce) : std::nullopt; },
     [](State& state, MonotonicTime, Effects& effects) { DivideHostCores(state, effects); }},
    {"drain", DrainEnd, OnLeave},
};

}  // namespace

void OnSessionTime(State& state, MonotonicTime now, Effects& effects) {
  for (size_t device = 0; device < state.devices.size(); ++device) {
    for (const DeviceTimer& timer : kDeviceTimers) {
      const Due due = timer.due(state.devices[device]);
      if (due && now >= *due) timer.act(state, static_cast<int>(device), now, effects);
    }
  }
  for (const SessionTimer& timer : kSessionTimers) {
    const Due due = timer.due(state);
    if (due && now >= *due) timer.act(state, now, effects);
  }
}

MonotonicTime NextSessionTime(const State& state) {
  Due next;
  for (const Device& device : state.devices) {
    for (const DeviceTimer& timer : kDeviceTimers) next = EarlierOf(next, timer.due(device));
  }
  for (const SessionTimer& timer : kSessionTimers) next = EarlierOf(next, timer.due(state));
  return *next;  // a stream is dialled, awaited or kept
}

}  // namespace troupe::session
