// Prints the logs of a job's ranks, and follows them.
#ifndef TROUPE_CLI_JOB_LOGS_H_
#define TROUPE_CLI_JOB_LOGS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "cli/client.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/log_lines.h"

namespace troupe {

struct LogOptions {
  std::string job;              // "jobs/x"
  std::optional<int32_t> rank;  // absent: all ranks, in the order of time
  LogSelection selection;
  bool json = false;
  // The least time between two reads of FollowLogs. A read transfers the ends of all logs, so the
  // pause is also at least four times as long as the last read took, but at most half a minute.
  std::chrono::milliseconds pause{1000};
  // The time for which FollowLogs repeats reads that fail with an error that may pass.
  std::chrono::milliseconds away_limit{60'000};
};

// Prints the selected lines on stdout, and on stderr which workers cannot be reached and how many
// lines were left out, the oldest ones, because of selection.most_bytes. The errors are those of
// the coordinator; as text, what has arrived before is printed.
StatusOr<ExitCode> PrintLogs(Client* client, const LogOptions& options);

// The same as text, and then the lines that are logged later, until the job has ended (kDone),
// until Ctrl-C (kInterrupted), or until an error.
//
// If the job cannot be looked at the first time, that error ends it. Later, and if only the logs
// cannot be read at first, the errors UNAVAILABLE, FAILED_PRECONDITION (no worker that has lines is
// connected), DEADLINE_EXCEEDED (a worker does not answer; the lines of others are printed) and
// RESOURCE_EXHAUSTED end it once options.away_limit has passed since the first of them in a row.
// selection.tail applies up to the first read without an error.
//
// A rank that logs more than 4 MiB between two reads is shown with a gap; SeenLogLines states which
// other lines are shown twice or not at all.
StatusOr<ExitCode> FollowLogs(Client* client, InterruptWatch* interrupt, const LogOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLI_JOB_LOGS_H_
