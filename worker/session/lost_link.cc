#include "worker/session/lost_link.h"

#include <algorithm>
#include <utility>

#include "worker/session/rank_lives.h"

namespace troupe::session {
namespace {

constexpr Duration kNoteInterval = std::chrono::seconds(30);
// The longest wait of a daemon that was asked to stop for the answer to its goodbye.
constexpr Duration kLeaveLimit = std::chrono::seconds(1);

}  // namespace

void GoDown(State& state, MonotonicTime now, Duration longest) {
  state.link = Link::kDown;
  // Several dials must fit into the time for which the coordinator keeps its ranks.
  if (!state.groups.empty()) longest = kLongestDialBackoff;
  const Duration limit = longest > kLongestDialBackoff
                             ? longest
                             : std::min<Duration>(longest, state.limits.reconnect_grace / 6);
  state.dial_at = now + Backoff(++state.failed_dials, limit);
}

// The pauses double, so that several dials fit into the time for which the ranks are kept.
void GoDownWithoutAccess(State& state, MonotonicTime now) {
  state.link = Link::kDown;
  state.dial_at = now + Backoff(++state.failed_dials, kLongestAccessBackoff);
}

void NoteReason(State& state, std::string text, MonotonicTime now, Effects& effects) {
  if (text == state.noted && now < state.note_again_at) return;
  state.noted = text;
  state.note_again_at = now + kNoteInterval;
  effects.push_back(Note{std::move(text)});
}

void EndOnRequest(State& state, Effects& effects) {
  state.ended = true;
  effects.push_back(EndDaemon{0, state.drain ? state.drain->reason : "asked to stop by a signal"});
}

void OnLeave(State& state, MonotonicTime now, Effects& effects) {
  if (state.link != Link::kUp) return EndOnRequest(state, effects);
  v1::WorkerMessage goodbye;
  goodbye.set_leader_epoch(state.leader_epoch);
  goodbye.mutable_goodbye();
  effects.push_back(SendToCoordinator{std::move(goodbye)});
  state.leave_by = now + kLeaveLimit;
}

}  // namespace troupe::session
