// The process of one device's ranks: `troupe-worker --rank-process SOCKET,PROGRESS`, made by the
// daemon and by nobody else. Its main thread is the control thread; each group epoch has a step
// thread of its own (worker/rank/rank_run.h).
//
// It dies with its daemon: by the parent-death signal, armed here against the daemon's main thread,
// and by the end of file on its socket. It stays warm between group epochs and jobs; a job leaves
// nothing behind in it.
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

// "3,4".
StatusOr<RankDescriptors> ParseRankDescriptors(std::string_view text);

// Runs until the daemon is gone. Returns the exit code.
int RunRankProcess(const RankDescriptors& descriptors);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_PROCESS_H_
