// The daemon's slow work on files: reads logs and traces, removes checkpoints, reads commits back
// from disk. Three actors do it, each on a thread of its own. Removals have their own, because
// checkpoints may be on a mount that hangs, while logs and traces are on this host. The verifier's
// thread permanently has a low priority, because it is not allowed to raise it again.
#ifndef TROUPE_WORKER_DAEMON_FILE_TASKS_H_
#define TROUPE_WORKER_DAEMON_FILE_TASKS_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "troupe/v1/worker.pb.h"
#include "worker/daemon/actor_thread.h"
#include "worker/daemon/event_sender.h"
#include "worker/session/state.h"

namespace troupe {

// Passes the messages of one answer to the coordinator.
using AnswerCoordinator = std::function<Status(std::vector<v1::WorkerMessage>)>;

struct FileTasksOptions {
  session::Config config;
  // Passes SessionEvents to the session actor.
  std::function<Status(AnyMessage)> send;
  // Called if an actor ends by itself, with its name and cause.
  RootEnded on_end;
  size_t mailbox_capacity = 1024;  // for each actor
};

// Thread-safe. A task for an actor whose mailbox is full is dropped and logged; the coordinator
// asks again.
class FileTasks {
 public:
  explicit FileTasks(FileTasksOptions options);
  // Finishes the tasks in progress, except that it aborts the reading of a commit; drops the
  // waiting tasks.
  ~FileTasks();
  FileTasks(const FileTasks&) = delete;
  FileTasks& operator=(const FileTasks&) = delete;

  void ReadLogs(v1::ReadLogs request, AnswerCoordinator answer);
  // Answers with the trace of a rank that has ended.
  void ReadTrace(v1::TraceRequest request, int rank, AnswerCoordinator answer);
  // Reports CheckpointGone once the removal is durable. A failure (a different folder is mounted
  // there) is logged, and the coordinator asks again.
  void Remove(v1::DeleteCheckpoint request);
  // Removes images that ranks had saved here; a failure is logged.
  void RemoveImages(v1::DeleteImages request);
  // Removes the logs that ranks of the job had written here before this call; a failure is logged.
  void RemoveLogs(v1::ForgetJob request);
  // Reads a commit back, one at a time and with low priority, then reports CheckpointReadBack. A
  // request for a commit that is already waiting or being read has no further effect. Returns
  // RESOURCE_EXHAUSTED if too many wait; this request is not reported then.
  Status Verify(v1::VerifyCheckpoint request);

 private:
  struct Shared;

  const std::shared_ptr<Shared> shared_;
  ActorThread reader_;
  ActorThread remover_;
  ActorThread verifier_;
};

// The answer to a request for a reading that ended with `found`.
session::CheckpointReadBack ReadBackAnswer(const v1::VerifyCheckpoint& request,
                                           const Status& found);

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_FILE_TASKS_H_
