// The call of `troupe cancel`, and what becomes of the job if nobody waits for its answer.
#ifndef TROUPE_CLI_CANCEL_CALL_H_
#define TROUPE_CLI_CANCEL_CALL_H_

#include <optional>

#include "base/status.h"
#include "cli/client.h"
#include "cli/interrupt.h"

namespace troupe {

// Returns the ended job. On stderr it announces the wait for a checkpoint, and names the applied
// steps that are in no commit. Returns nothing at Ctrl-C, after a line on stderr that states what
// becomes of the job.
StatusOr<std::optional<v1::Job>> CancelAndWait(Client* client, InterruptWatch* interrupt,
                                               const v1::CancelJobRequest& request);

}  // namespace troupe

#endif  // TROUPE_CLI_CANCEL_CALL_H_
