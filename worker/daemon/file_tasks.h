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
#include "worker/daemon/session_files.h"
#include "worker/session/state.h"

namespace troupe {

struct FileTasksOptions {
  session::Config config;
  // Passes SessionEvents to the session actor.
  std::function<Status(AnyMessage)> send;
  // Called if an actor ends by itself, with its name and cause.
  RootEnded on_end;
  size_t mailbox_capacity = 1024;  // for each actor
};

// Thread-safe. A task for an actor whose mailbox is full is dropped and logged. Commits are read
// back one at a time and with low priority.
class FileTasks final : public SessionFiles {
 public:
  explicit FileTasks(FileTasksOptions options);
  // Finishes the tasks in progress, except that it aborts the reading of a commit; drops the
  // waiting tasks.
  ~FileTasks() override;
  FileTasks(const FileTasks&) = delete;
  FileTasks& operator=(const FileTasks&) = delete;

  void ReadLogs(v1::ReadLogs request, std::set<int> running, AnswerCoordinator answer) override;
  void ReadTrace(v1::TraceRequest request, int rank, AnswerCoordinator answer) override;
  void Remove(v1::DeleteCheckpoint request) override;
  void RemoveImages(v1::DeleteImages request) override;
  void RemoveLogs(v1::ForgetJob request) override;
  Status Verify(v1::VerifyCheckpoint request) override;

 private:
  struct Shared;

  const std::shared_ptr<Shared> shared_;
  ActorThread reader_;
  ActorThread remover_;
  ActorThread verifier_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_FILE_TASKS_H_
