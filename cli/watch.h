// Following a job: its history and what happens to it, to the end, over restarts of the coordinator.
#ifndef TROUPE_CLI_WATCH_H_
#define TROUPE_CLI_WATCH_H_

#include <string>

#include "base/status.h"
#include "cli/client.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"

namespace troupe {

struct WatchOptions {
  std::string job;  // "jobs/x"
  int64_t from_step = 0;
  bool json = false;
  // Whether stdout gets a line for every update; else there is only the progress line.
  bool lines = true;
};

// Prints until the job ends (kDone if it SUCCEEDED, else kFailed), Ctrl-C (kInterrupted; the job goes on), or the
// coordinator has been away for longer than it may (UNAVAILABLE).
StatusOr<ExitCode> WatchJob(Client* client, InterruptWatch* interrupt, const WatchOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLI_WATCH_H_
