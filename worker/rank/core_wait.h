// How long the calling thread could have run and had no core: time that other work took from it.
// Belongs to one thread.
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

  // Seconds since the call before; since the thread's begin at the first one. 0 where the kernel does
  // not say.
  double TakeSeconds();

 private:
  int file_ = -2;  // of the thread that called first; -1: the kernel does not say
  int64_t last_ns_ = 0;
};

// The second number of a schedstat file, in nanoseconds; absent where `text` is none.
std::optional<int64_t> WaitOfSchedstat(std::string_view text);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_CORE_WAIT_H_
