// Measures how long the calling thread was runnable but had no core: time that other work took from
// it. To be used by one thread.
#ifndef TROUPE_WORKER_RANK_CORE_WAIT_H_
#define TROUPE_WORKER_RANK_CORE_WAIT_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace troupe {

class CoreWait {
 public:
  CoreWait() = default;
  CoreWait(const CoreWait&) = delete;
  CoreWait& operator=(const CoreWait&) = delete;
  ~CoreWait();

  // Returns the seconds since the previous call; the first call, since the thread began. 0 if the
  // kernel does not report them.
  double SecondsSinceLastCall();

 private:
  int file_ = -2;  // file of the thread that called first; -1: the kernel does not report it
  int64_t last_ns_ = 0;
};

// Parses the second number of a schedstat file, in nanoseconds; absent if `text` has a different
// format.
std::optional<int64_t> WaitOfSchedstat(std::string_view text);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_CORE_WAIT_H_
