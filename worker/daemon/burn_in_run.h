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

// Writes a file of 1 MiB durably into a folder in which jobs have kept checkpoints, compares what
// can be read of it and removes it. `identified` is of FolderIdPath (checkpoint/format/folder.h),
// without identity where that is not known. UNAVAILABLE where the folder does not have the
// identity, or has none: it is the place of one that is not mounted. DATA_LOSS where what is read
// differs; otherwise what the file system says. `name` tells the files of several workers apart.
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
