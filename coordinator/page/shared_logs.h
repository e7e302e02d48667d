// The newest lines of jobs' logs, which the viewers of the page share: each read has the workers
// send up to 4 MiB of every rank. Viewers may see them only after calls of their own have shown
// that they may see the job and read its logs.
#ifndef TROUPE_COORDINATOR_PAGE_SHARED_LOGS_H_
#define TROUPE_COORDINATOR_PAGE_SHARED_LOGS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace troupe {

struct LogSample {
  std::vector<std::string> lines;  // newest last
  size_t more_lines = 0;           // older ones, left out of `lines`
  Status error;                    // the reason why lines are missing
};

// Thread-safe.
class SharedLogs {
 public:
  static constexpr size_t kMost = 16;  // samples
  // A sample is shown without another read in the first time, and while other logs are read in the
  // second.
  static constexpr Duration kFresh = std::chrono::seconds(4);
  static constexpr Duration kUsable = std::chrono::seconds(30);

  // The name of a job, its time of creation, and the rank; absent: all ranks.
  using Key = std::tuple<std::string, int64_t, std::optional<int>>;

  // `clock` outlives the object.
  explicit SharedLogs(const Clock& clock) : clock_(clock) {}

  // Returns a sample, which may be of another viewer, or calls `read`. One thread reads at a time:
  // UNAVAILABLE if it is another one and there is no usable sample. An error that only concerns its
  // viewer, or without lines, is not shared.
  LogSample Get(const Key& key, const std::function<LogSample()>& read);

 private:
  struct Entry {
    LogSample sample;
    MonotonicTime read_at;
  };

  std::optional<LogSample> Find(const Key& key, Duration most_age);
  void Keep(const Key& key, const LogSample& sample);

  const Clock& clock_;
  std::mutex reading_;  // locked by the one who reads
  std::mutex mutex_;    // guards the member below
  std::map<Key, Entry> samples_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PAGE_SHARED_LOGS_H_
