// A burn-in that the coordinator asks for: `troupe-worker --burn-in` on all devices of this worker
// in a process of its own, and a file written to, read back from and removed from each folder in
// question.
#ifndef TROUPE_WORKER_BURN_IN_RUN_H_
#define TROUPE_WORKER_BURN_IN_RUN_H_

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/serial_executor.h"
#include "base/status.h"
#include "troupe/v1/worker.pb.h"
#include "worker/event_queue.h"

namespace troupe {

// Writes a file of 1 MiB durably into `folder`, in which jobs have kept checkpoints, compares what
// can be read of it and removes it. UNAVAILABLE where the folder has no identity
// (checkpoint/folder.h): it is the empty place of one that is not mounted. DATA_LOSS where what is
// read differs; otherwise what the file system says. `name` tells the files of several workers
// apart.
Status TryFolder(FileSystem& files, const std::string& folder, const std::string& name);

struct BurnInOptions {
  std::string executable;     // troupe-worker
  std::string devices;        // "cuda:8"
  std::string name;           // of the worker
  std::string log_directory;  // where the process may leave files
};

// Thread-safe.
class BurnInRun {
 public:
  BurnInRun(BurnInOptions options, std::shared_ptr<EventQueue> events);
  // Stop.
  ~BurnInRun();
  BurnInRun(const BurnInRun&) = delete;
  BurnInRun& operator=(const BurnInRun&) = delete;

  // Says BurnInEnded once it is done, has failed or is stopped. One that is under way is stopped
  // first.
  void Start(v1::BurnIn request);
  // Kills the process; the burn-in is not sound then.
  void Stop();

 private:
  // Aborted where Stop has been called more often than `stops` times.
  Status Try(const v1::BurnIn& request, int stops);
  Status RunProcess(double seconds, int stops);
  StatusOr<pid_t> Spawn(double seconds, int output);

  const BurnInOptions options_;
  const std::shared_ptr<EventQueue> events_;
  std::mutex mutex_;
  pid_t pid_ = 0;  // of the process under way; 0: none
  int stops_ = 0;  // so often Stop was called
  // Last: its tasks use the others.
  SerialExecutor executor_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_BURN_IN_RUN_H_
