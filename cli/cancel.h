// Cancels a job and, where it commits a checkpoint first, waits for that.
#ifndef TROUPE_CLI_CANCEL_H_
#define TROUPE_CLI_CANCEL_H_

#include <optional>

#include "base/status.h"
#include "cli/client.h"
#include "cli/interrupt.h"

namespace troupe {

// Returns the ended job. On stderr it announces the wait for a checkpoint, and names the applied
// steps that are in no commit. Returns nothing at Ctrl-C during the wait: the job then ends after
// its checkpoint.
StatusOr<std::optional<v1::Job>> CancelJob(Client* client, InterruptWatch* interrupt,
                                           const v1::CancelJobRequest& request);

}  // namespace troupe

#endif  // TROUPE_CLI_CANCEL_H_
