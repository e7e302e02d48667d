// Calls that the kernel may never let return, such as those on a mount that hangs.
#ifndef TROUPE_BASE_LIMITED_CALLS_H_
#define TROUPE_BASE_LIMITED_CALLS_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace troupe {

// Thread-safe.
class LimitedCalls {
 public:
  // At most `most_unfinished` calls are unfinished at a time.
  explicit LimitedCalls(int most_unfinished);

  // Runs `call` on a thread of its own and returns its status. DEADLINE_EXCEEDED, naming `what`,
  // if it does not return within `limit`: its thread then continues by itself. ABORTED, without
  // running it, if too many calls are unfinished.
  // REQUIRES: `call` owns what it uses.
  Status Run(std::function<Status()> call, Duration limit, std::string_view what);

 private:
  const int most_unfinished_;
  const std::shared_ptr<std::atomic<int>> unfinished_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_LIMITED_CALLS_H_
