// The daemon's slow work on files, off its loop: reads logs and traces, removes checkpoints, reads commits
// back from the disk.
#ifndef TROUPE_WORKER_FILE_CHORES_H_
#define TROUPE_WORKER_FILE_CHORES_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/serial_executor.h"
#include "base/status.h"
#include "troupe/v1/worker.pb.h"
#include "worker/coordinator_stream.h"
#include "worker/event_queue.h"
#include "worker/session/session.h"

namespace troupe {

// Thread-safe.
class FileChores {
 public:
  FileChores(session::Config config, std::shared_ptr<EventQueue> events);
  // Finishes what it does now, but for a commit that is being read: that is given up. The rest is
  // dropped.
  ~FileChores();
  FileChores(const FileChores&) = delete;
  FileChores& operator=(const FileChores&) = delete;

  // Answers on `stream`.
  void ReadLogs(v1::ReadLogs request, std::shared_ptr<CoordinatorStream> stream);
  // Likewise, of a rank that has ended.
  void ReadTrace(v1::TraceRequest request, int rank, std::shared_ptr<CoordinatorStream> stream);
  // Says CheckpointGone once the removal is durable; a failure (another folder is mounted there)
  // is logged, the coordinator asks again, as it does where too much waits to be removed.
  void Remove(v1::DeleteCheckpoint request);
  // Removes what ranks had kept here, or, without paths, what logs of the job are here; a failure is
  // logged.
  void RemoveImages(v1::DeleteImages request);
  // Says CheckpointReadBack once it has read the commit, one at a time and behind everything else
  // that wants the processor. One that waits or is read already is not read again for being asked
  // for again.
  void Verify(v1::VerifyCheckpoint request);

 private:
  void ReadBack(const v1::VerifyCheckpoint& request);
  void Say(const v1::VerifyCheckpoint& request, const Status& found);

  const session::Config config_;
  const std::shared_ptr<EventQueue> events_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::set<std::string> verifying_;  // paths, from the request to the answer
  // Last: their tasks use the others. Removals have a thread of their own: checkpoints may lie on a
  // mount that hangs, logs and traces are on this host. The verifier's thread has a low priority for
  // good: it may not raise it again.
  SerialExecutor executor_;
  SerialExecutor remover_;
  SerialExecutor verifier_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_FILE_CHORES_H_
