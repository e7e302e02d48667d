// A burn-in that the coordinator requests: runs `troupe-worker --burn-in` on all devices of this
// worker in a process of its own, and writes, reads back and removes a file in each folder that is
// to be tested.
#ifndef TROUPE_WORKER_DAEMON_BURN_IN_RUN_H_
#define TROUPE_WORKER_DAEMON_BURN_IN_RUN_H_

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/serial_executor.h"
#include "base/status.h"
#include "troupe/v1/worker.pb.h"
#include "worker/daemon/event_queue.h"

namespace troupe {

// Tests a folder in which jobs have stored checkpoints: writes a file of 1 MiB durably, reads it
// back, compares and removes it. `identified` is a result of FolderIdPath
// (checkpoint/format/folder.h), without identity if that is unknown; `name` distinguishes the files
// of several workers. UNAVAILABLE if the folder does not have the identity or any identity, because
// it is not mounted; DATA_LOSS if the data differs; other errors are the file system's.
Status TryFolder(FileSystem& files, const std::string& identified, const std::string& name);

struct BurnInOptions {
  std::string executable;     // troupe-worker
  std::string devices;        // "cuda:8"
  std::string name;           // name of the worker
  std::string log_directory;  // where the process may leave files
  // Time for folders and for the start of the process, in addition to a burn-in's own seconds. It
  // is less than what the coordinator allows (coordinator/faults/host_faults.cc), so that the
  // coordinator learns the reason.
  Duration allowance = std::chrono::seconds(100);
  // Time in which a stopped burn-in ends, unless the kernel blocks it.
  Duration stop_limit = std::chrono::seconds(5);
  std::function<Status(const std::string& folder)> try_folder = {};  // empty: TryFolder
};

// Runs each burn-in on a thread of its own. If the kernel blocks the thread or its process, both
// are abandoned, so that a hanging device or mount blocks no caller.
//
// Thread-safe.
class BurnInRun {
 public:
  BurnInRun(BurnInOptions options, std::shared_ptr<EventQueue> events);
  // Calls Stop and waits for the end, for at most the stop limit.
  ~BurnInRun();
  BurnInRun(const BurnInRun&) = delete;
  BurnInRun& operator=(const BurnInRun&) = delete;

  // Starts a burn-in; first stops one in progress. Pushes BurnInEnded once it is done, has failed,
  // is stopped or has not ended within its seconds plus the allowance.
  void Start(v1::BurnIn request);
  // Kills the process; the burn-in then counts as failed.
  void Stop();

 private:
  class Trial;

  const BurnInOptions options_;
  const std::shared_ptr<EventQueue> events_;
  std::mutex mutex_;
  std::shared_ptr<Trial> newest_;  // null: none was started
  // Declared last: its tasks use the other members.
  SerialExecutor executor_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_BURN_IN_RUN_H_
