// Looks at the data of a new job before it is accepted, on a thread of its own: opening data may take
// a while, and nothing else of the coordinator waits for it.
#ifndef TROUPE_COORDINATOR_DATA_CHECK_H_
#define TROUPE_COORDINATOR_DATA_CHECK_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/file_system.h"
#include "base/status.h"
#include "coordinator/fleet.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// INVALID_ARGUMENT naming the key to blame where training could not open the data of `complete`. Data
// whose folder is not on this host may be on the workers', and passes unless `must_be_here`.
Status CheckJobData(FileSystem& files, const v1::JobSpec& complete, bool must_be_here);

// True where there are workers and all of them run on this host: what is not here is nowhere.
bool AllWorkersAreHere(const Fleet& fleet);

// Thread-safe.
class DataCheck {
 public:
  DataCheck();
  ~DataCheck() { Stop(); }
  DataCheck(const DataCheck&) = delete;
  DataCheck& operator=(const DataCheck&) = delete;

  // Calls `done` with the outcome, on the thread of the checks; RESOURCE_EXHAUSTED, at once, where
  // too many wait.
  void Check(v1::JobSpec complete, bool must_be_here, std::function<void(Status)> done);

  // Finishes the check that is under way; those that wait and later ones are dropped. Idempotent.
  void Stop();

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_DATA_CHECK_H_
