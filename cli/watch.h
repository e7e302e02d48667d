// Follows a job to its end: prints its history and its events, across restarts of the coordinator.
#ifndef TROUPE_CLI_WATCH_H_
#define TROUPE_CLI_WATCH_H_

#include <cstdint>
#include <optional>
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
  // If true, stdout gets a line for every update; otherwise only the progress line is shown.
  bool lines = true;
};

// Prints until the job ends (kDone if it SUCCEEDED, else kFailed), until Ctrl-C (kInterrupted; the
// job continues), or until the coordinator has been unreachable for too long (UNAVAILABLE).
StatusOr<ExitCode> WatchJob(Client* client, InterruptWatch* interrupt, const WatchOptions& options);

// Returns the figures of a step in the history of `job`, "jobs/x", or of the next one there.
// Nothing if the coordinator does not return them within two seconds. REQUIRES: `step` is at
// least 1.
std::optional<v1::StepEvent> ReadStep(Client* client, const std::string& job, int64_t step);

}  // namespace troupe

#endif  // TROUPE_CLI_WATCH_H_
