// The process that runs the ranks of one device: `troupe-worker --rank-process SOCKET,PROGRESS`,
// started only by the daemon. Its main thread is the control thread; each group epoch has its own
// step thread (worker/rank/rank_run.h). Neither is an actor: a step is one sequence, which a
// mailbox would only delay, and what it needs of the control thread is the newest order, not each
// message (worker/rank/directives.h).
//
// It dies with its daemon: by the parent-death signal, armed here for the daemon's thread that
// starts it, and by the end of file on its socket. It stays warm between group epochs and jobs; a
// job leaves no state in it.
#ifndef TROUPE_WORKER_RANK_RANK_PROCESS_H_
#define TROUPE_WORKER_RANK_RANK_PROCESS_H_

#include <string_view>

#include "base/status.h"
#include "worker/executor/step_progress.h"

namespace troupe {

// The descriptors that a rank process inherits.
struct RankDescriptors {
  int socket = -1;
  int progress = -1;  // memory of one StepProgress, shared with the daemon
};

// Parses "3,4".
StatusOr<RankDescriptors> ParseRankDescriptors(std::string_view text);

// Runs until the daemon is gone; returns the exit code.
int RunRankProcess(const RankDescriptors& descriptors);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_PROCESS_H_
