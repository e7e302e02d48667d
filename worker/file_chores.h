// The daemon's slow work on files, off its loop: reads logs, removes checkpoints.
#ifndef TROUPE_WORKER_FILE_CHORES_H_
#define TROUPE_WORKER_FILE_CHORES_H_

#include <memory>

#include "base/serial_executor.h"
#include "troupe/v1/worker.pb.h"
#include "worker/coordinator_stream.h"
#include "worker/event_queue.h"
#include "worker/session/session.h"

namespace troupe {

// Thread-safe.
class FileChores {
 public:
  FileChores(session::Config config, std::shared_ptr<EventQueue> events);
  // Finishes what it does now; the rest is dropped.
  ~FileChores() = default;
  FileChores(const FileChores&) = delete;
  FileChores& operator=(const FileChores&) = delete;

  // Answers on `stream`.
  void ReadLogs(v1::ReadLogs request, std::shared_ptr<CoordinatorStream> stream);
  // Says CheckpointGone once the removal is durable; a failure is logged, the coordinator asks
  // again, as it does where too much waits to be removed.
  void Remove(v1::DeleteCheckpoint request);

 private:
  const session::Config config_;
  const std::shared_ptr<EventQueue> events_;
  SerialExecutor executor_;  // last: its tasks use the others
};

}  // namespace troupe

#endif  // TROUPE_WORKER_FILE_CHORES_H_
