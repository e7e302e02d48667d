// The page remembers the steps, events and trace of the jobs that somebody looks at, so that each
// poll reads only what is new. They are the same for all viewers, who may see them only after a
// call of their own has shown that they may see the job.
#ifndef TROUPE_COORDINATOR_PAGE_WATCHED_JOBS_H_
#define TROUPE_COORDINATOR_PAGE_WATCHED_JOBS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "base/clock.h"
#include "coordinator/page/step_record.h"
#include "coordinator/page/trace_sample.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// A job in one group epoch.
struct WatchedJob {
  explicit WatchedJob(uint64_t group_epoch) : steps(group_epoch) {}

  std::mutex reading;  // locked by the one who reads on; others show what is there
  std::mutex mutex;    // guards the members below
  StepRecord steps;
  bool is_complete = false;  // the job has ended, and all of its history was read
  TraceSample trace;
};

// Thread-safe.
class WatchedJobs {
 public:
  static constexpr size_t kUsual = 8;
  static constexpr size_t kMost = 32;
  // Whoever follows a job looks at it again within this time.
  static constexpr Duration kLookInterval = std::chrono::seconds(15);

  // Returns what is remembered of this job in its present group epoch. The jobs that were looked at
  // longest ago are forgotten for a new one: those beyond kUsual unless somebody has looked at them
  // just now, and those beyond kMost.
  std::shared_ptr<WatchedJob> Find(const v1::Job& job, MonotonicTime now);

  // Whether nobody has asked for a trace of the job within kTraceInterval; now the caller does.
  // It holds for jobs that are forgotten too.
  bool MayTrace(const v1::Job& job, MonotonicTime now);
  // Undoes MayTrace: what was asked for is of no use to others.
  void ForgetTrace(const v1::Job& job);

 private:
  using Key = std::tuple<std::string, int64_t, uint64_t>;  // name, time of creation, group epoch
  struct Entry {
    Key key;
    std::shared_ptr<WatchedJob> job;
    MonotonicTime looked_at;
  };

  static Key KeyOf(const v1::Job& job);

  std::mutex mutex_;       // guards the members below
  std::list<Entry> jobs_;  // looked at last first
  std::map<Key, MonotonicTime> traced_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PAGE_WATCHED_JOBS_H_
