// The life of one rank process as an actor: passes commands to its socket, reports what it sends
// and how it ended, and ends with it. Whatever ends the actor ends the process too.
//
// The process's socket is read only while the session actor has handled all earlier reports, so a
// process that reports faster than they are handled waits in its own writes.
#ifndef TROUPE_WORKER_DAEMON_RANK_ACTOR_H_
#define TROUPE_WORKER_DAEMON_RANK_ACTOR_H_

#include <memory>
#include <string>
#include <string_view>

#include "actor/actor.h"
#include "troupe/v1/rank.pb.h"
#include "worker/daemon/actor_gate.h"
#include "worker/daemon/descriptor_watch.h"
#include "worker/daemon/event_sender.h"
#include "worker/daemon/rank_child.h"

namespace troupe {

// Messages to a RankActor.
struct CommandRank {
  static constexpr std::string_view kMessageName = "rank.command";
  v1::RankCommand command;
};
struct KillRank {
  static constexpr std::string_view kMessageName = "rank.kill";
  std::string reason;
};

struct RankActorOptions {
  int device = 0;
  std::unique_ptr<RankChild> child;
  DescriptorWatch* descriptors = nullptr;  // outlives the actor
  std::shared_ptr<ActorGate> gate;         // to this actor's system
};

// Reports RankReported, then one RankExited, to its owner.
std::unique_ptr<Actor> MakeRankActor(RankActorOptions options);

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_RANK_ACTOR_H_
