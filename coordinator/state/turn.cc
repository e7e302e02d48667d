#include "coordinator/state/turn.h"

namespace troupe {

void SendToWorker(const std::string& worker, v1::CoordinatorMessage message, Turn& turn) {
  const Worker* const target = FindWorker(worker, turn.fleet);
  if (target == nullptr || target->session == 0) return;
  message.set_leader_epoch(turn.leader_epoch);
  turn.effects.messages.push_back({target->session, std::move(message), false});
}

}  // namespace troupe
