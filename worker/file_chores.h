// Does the daemon's slow work on files, on a thread of its own: reads logs, removes checkpoints. In
// order, one at a time.
#ifndef TROUPE_WORKER_FILE_CHORES_H_
#define TROUPE_WORKER_FILE_CHORES_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

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
  ~FileChores();
  FileChores(const FileChores&) = delete;
  FileChores& operator=(const FileChores&) = delete;

  // Answers on `stream`.
  void ReadLogs(v1::ReadLogs request, std::shared_ptr<CoordinatorStream> stream);
  // Says CheckpointGone once the removal is durable; a failure is logged, the coordinator asks
  // again.
  void Remove(v1::DeleteCheckpoint request);

 private:
  void Run();
  void Queue(std::function<void()> work);

  const session::Config config_;
  const std::shared_ptr<EventQueue> events_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_FILE_CHORES_H_
