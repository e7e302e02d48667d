// Decides for how long the series of a job are shown: until kSeriesAfterEnd after its end, because
// each scrape repeats them. Pure: times are arguments.
#ifndef TROUPE_COORDINATOR_SERVICE_SERIES_LIFETIME_H_
#define TROUPE_COORDINATOR_SERVICE_SERIES_LIFETIME_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

inline constexpr Duration kSeriesAfterEnd = std::chrono::minutes(15);

class SeriesLifetime {
 public:
  // Notes the state of `job`. `ended_wall_ns`: the end of a job that has ended; 0: not known.
  // A job that is resumed is shown again, its counters from 0.
  void SetState(const std::string& job, v1::JobState state, int64_t ended_wall_ns,
                MonotonicTime now, int64_t wall_ns);
  // Returns whether `job` is to have series.
  bool IsShown(const std::string& job) const;
  // Returns the jobs whose series go now, each once.
  std::vector<std::string> Expire(MonotonicTime now);
  void Forget(const std::string& job) { ended_.erase(job); }

 private:
  struct Ended {
    MonotonicTime shown_until;
    bool is_shown = true;
  };

  std::map<std::string, Ended> ended_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_SERIES_LIFETIME_H_
