// The effects of the session machine (worker/session/session.h), which its shell performs in order.
// Data only. They are one list because the order of different kinds matters (HangUp, then Dial);
// the coordinator's are lists by kind (coordinator/state/event.h), because each of its events has
// one durable write that precedes everything else.
#ifndef TROUPE_WORKER_SESSION_EFFECT_H_
#define TROUPE_WORKER_SESSION_EFFECT_H_

#include <cstdint>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "troupe/v1/rank.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe::session {

struct Dial {
  uint64_t stream = 0;
  v1::WorkerMessage hello;
};
struct HangUp {
  uint64_t stream = 0;
};
struct SendToCoordinator {
  v1::WorkerMessage message;
};
// The shell adds the memory usage and sends.
struct SendHeartbeat {
  uint64_t leader_epoch = 0;
};
struct StartProcess {
  int device = 0;
};
struct KillProcess {
  int device = 0;
  std::string reason;
};
struct SendToRank {
  int device = 0;
  v1::RankCommand command;
};
struct ReadRankLogs {
  v1::ReadLogs request;
  std::set<int> running;  // ranks of the job that have not ended here
};
// Asks for the trace that a rank which ended here left behind; answered also if there is none.
struct ReadRankTrace {
  v1::TraceRequest request;
  int rank = 0;
};
struct RemoveCheckpoint {
  v1::DeleteCheckpoint request;
};
struct RemoveImages {
  v1::DeleteImages request;
};
struct RemoveRankLogs {
  v1::ForgetJob request;
};
// Answered by CheckpointReadBack.
struct ReadCheckpointBack {
  v1::VerifyCheckpoint request;
};
// Answered by BurnInEnded; a burn-in in progress is stopped first.
struct BeginBurnIn {
  v1::BurnIn request;
};
struct StopBurnIn {};
// For the other daemons of this host; replaces the claims published before.
struct PublishClaims {
  v1::CoreClaims claims;
};
// A message for the log.
struct Note {
  std::string text;
};
struct EndDaemon {
  int exit_code = 0;
  std::string message;
};
using Effect = std::variant<Dial, HangUp, SendToCoordinator, SendHeartbeat, StartProcess,
                            KillProcess, SendToRank, ReadRankLogs, ReadRankTrace, RemoveCheckpoint,
                            RemoveImages, RemoveRankLogs, ReadCheckpointBack, BeginBurnIn,
                            StopBurnIn, PublishClaims, Note, EndDaemon>;
using Effects = std::vector<Effect>;

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_EFFECT_H_
