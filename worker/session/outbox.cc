#include "worker/session/outbox.h"

#include <iterator>
#include <utility>

namespace troupe::session {
namespace {

// Ends of ranks kept without a stream; each device has at most a few.
constexpr size_t kUnsentMax = 1024;

}  // namespace

void Send(State& state, Effects& effects, v1::WorkerMessage message) {
  if (state.link != Link::kUp) return;
  message.set_leader_epoch(state.leader_epoch);
  effects.push_back(SendToCoordinator{std::move(message)});
}

void SendOrKeep(State& state, Effects& effects, v1::WorkerMessage message) {
  if (state.link == Link::kUp) return Send(state, effects, std::move(message));
  if (state.unsent.size() == kUnsentMax) state.unsent.pop_front();
  state.unsent.push_back(std::move(message));
}

void SendAgain(State& state, Effects& effects) {
  for (auto it = state.groups.begin(); it != state.groups.end();) {
    const Group& group = it->second;
    for (const auto& [rank, record] : group.ranks) {
      for (const auto& message : {record.address, record.ready, record.failed}) {
        if (message) Send(state, effects, *message);
      }
    }
    // Votes before reports, as they were made: a report of a step long after an attempt's says that
    // the attempt was passed by. Manifests after them: one may end the job and its history.
    for (const auto& [key, vote] : group.votes) Send(state, effects, vote);
    for (const auto& [step, report] : group.reports) Send(state, effects, report);
    for (const auto& [attempt, manifest] : group.manifests) Send(state, effects, manifest);
    it = group.ranks.empty() ? state.groups.erase(it) : std::next(it);
  }
  for (v1::WorkerMessage& message : state.unsent) Send(state, effects, std::move(message));
  state.unsent.clear();
}

}  // namespace troupe::session
