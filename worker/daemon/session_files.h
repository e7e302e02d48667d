// The file work of the session actor that is slow and must not block it. FileTasks does it on
// threads; the simulation models it.
#ifndef TROUPE_WORKER_DAEMON_SESSION_FILES_H_
#define TROUPE_WORKER_DAEMON_SESSION_FILES_H_

#include <functional>
#include <set>
#include <vector>

#include "base/status.h"
#include "troupe/v1/worker.pb.h"
#include "worker/session/event.h"

namespace troupe {

// Passes the messages of one answer to the coordinator.
using AnswerCoordinator = std::function<Status(std::vector<v1::WorkerMessage>)>;

// No call blocks. A task that cannot be accepted is dropped and logged; the coordinator asks again.
class SessionFiles {
 public:
  virtual ~SessionFiles() = default;

  // `running`: the ranks of the job that have not ended here.
  virtual void ReadLogs(v1::ReadLogs request, std::set<int> running, AnswerCoordinator answer) = 0;
  // Answers with the trace of a rank that has ended.
  virtual void ReadTrace(v1::TraceRequest request, int rank, AnswerCoordinator answer) = 0;
  // Reports CheckpointGone once the removal is durable. A failure (a different folder is mounted
  // there) is logged, and the coordinator asks again. A request replaces a waiting one for the same
  // path.
  virtual void Remove(v1::DeleteCheckpoint request) = 0;
  // Removes images that ranks had saved here; a failure is logged.
  virtual void RemoveImages(v1::DeleteImages request) = 0;
  // Removes the logs that ranks of the job had written here before this call; a failure is logged.
  virtual void RemoveLogs(v1::ForgetJob request) = 0;
  // Reads a commit back, then reports CheckpointReadBack. A request for a commit that is already
  // waiting or being read has no further effect. Returns RESOURCE_EXHAUSTED if too many wait; this
  // request is not reported then.
  virtual Status Verify(v1::VerifyCheckpoint request) = 0;
};

// The answer to a request for a reading that ended with `found`.
session::CheckpointReadBack ReadBackAnswer(const v1::VerifyCheckpoint& request,
                                           const Status& found);

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_SESSION_FILES_H_
