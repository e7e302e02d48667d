// Follows a job to its end: prints its history and its events, across restarts of the coordinator.
#ifndef TROUPE_CLI_WATCH_H_
#define TROUPE_CLI_WATCH_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/client.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"

namespace troupe {

struct WatchOptions {
  std::string job;  // "jobs/x"
  int64_t from_step = 0;
  bool json = false;
  // If true, stdout gets a line for every update, as JSON, or as text unless both stdout is a
  // terminal and stderr one that shows the history. If stderr is redirected, a terminal gets lines.
  bool lines = true;
  // If set, called with every step, before it is shown. An error ends the watch.
  std::function<Status(const v1::StepEvent&)> record;
};

// Prints until the job ends (kDone if it SUCCEEDED, else kFailed), until Ctrl-C (kInterrupted; the
// job continues), until the coordinator has been unreachable for too long (UNAVAILABLE), or until
// the first error of options.record. Where stderr is a terminal and stdout gets no lines, stderr
// gets a scrolling history (cli/output/step_history.h).
StatusOr<ExitCode> WatchJob(Client* client, InterruptWatch* interrupt, const WatchOptions& options);

// The limit of a look at a part of a job's history.
inline constexpr std::chrono::seconds kStepLimit{2};

// Returns the figures of a step in the history of `job`, "jobs/x", or of the next one there.
// Nothing if the coordinator does not return them within kStepLimit. REQUIRES: `step` is at least
// 1.
std::optional<v1::StepEvent> ReadStep(Client* client, const std::string& job, int64_t step);

// Returns why `job` ended, as the newest event of its state states. Empty if the coordinator does
// not return it within two seconds. REQUIRES: the job has ended.
std::string ReadEndMessage(Client* client, const v1::Job& job);

// Returns why the last try to save the state of `job` after its last step failed, as the newest
// events state; empty if it did not, or if the coordinator does not return them. It takes 300 ms.
// REQUIRES: the job has reached its last step and has not ended.
std::string ReadSaveFailure(Client* client, const v1::Job& job);

// The steps and events of a job that are kept.
struct JobHistory {
  std::map<int64_t, v1::StepEvent> steps;  // by step; of a repeated step the newest
  std::vector<v1::JobEvent> events;        // in the order of their time
};

// Reads the history of `job` up to its present step; it does not wait for the job's end. The errors
// are those of the coordinator, or DEADLINE_EXCEEDED if it does not return the steps in time.
StatusOr<JobHistory> ReadHistory(Client* client, const v1::Job& job);

}  // namespace troupe

#endif  // TROUPE_CLI_WATCH_H_
