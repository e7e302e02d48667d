// The daemon's slow work on files, outside its loop: reads logs and traces, removes checkpoints,
// reads commits back from disk.
#ifndef TROUPE_WORKER_DAEMON_FILE_CHORES_H_
#define TROUPE_WORKER_DAEMON_FILE_CHORES_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/serial_executor.h"
#include "base/status.h"
#include "troupe/v1/worker.pb.h"
#include "worker/daemon/coordinator_stream.h"
#include "worker/daemon/event_queue.h"
#include "worker/session/state.h"

namespace troupe {

// Thread-safe.
class FileChores {
 public:
  FileChores(session::Config config, std::shared_ptr<EventQueue> events);
  // Finishes the tasks in progress, except that it aborts the reading of a commit; drops the
  // waiting tasks.
  ~FileChores();
  FileChores(const FileChores&) = delete;
  FileChores& operator=(const FileChores&) = delete;

  // Answers on `stream`.
  void ReadLogs(v1::ReadLogs request, std::shared_ptr<CoordinatorStream> stream);
  // Answers on `stream` with the trace of a rank that has ended.
  void ReadTrace(v1::TraceRequest request, int rank, std::shared_ptr<CoordinatorStream> stream);
  // Pushes CheckpointGone once the removal is durable. A failure (a different folder is mounted
  // there) and a full queue are logged, and the coordinator asks again.
  void Remove(v1::DeleteCheckpoint request);
  // Removes images that ranks had saved here; a failure is logged.
  void RemoveImages(v1::DeleteImages request);
  // Removes the logs that ranks of the job had written here before this call; a failure is logged.
  void RemoveLogs(v1::ForgetJob request);
  // Reads a commit back, one at a time and with low priority, then pushes CheckpointReadBack. A
  // request for a commit that is already waiting or being read has no further effect.
  void Verify(v1::VerifyCheckpoint request);

 private:
  void ReadBack(const v1::VerifyCheckpoint& request);
  void Say(const v1::VerifyCheckpoint& request, const Status& found);

  const session::Config config_;
  const std::shared_ptr<EventQueue> events_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::set<std::string> verifying_;  // paths, from request to answer
  // Declared last, because their tasks use the other members. Removals have their own thread,
  // because checkpoints may be on a mount that hangs, while logs and traces are on this host. The
  // verifier's thread permanently has a low priority, because it is not allowed to raise it again.
  SerialExecutor executor_;
  SerialExecutor remover_;
  SerialExecutor verifier_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_FILE_CHORES_H_
