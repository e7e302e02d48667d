// Counts the calls that another library still works on, so that what they use outlives them.
#ifndef TROUPE_BASE_OPEN_CALLS_H_
#define TROUPE_BASE_OPEN_CALLS_H_

#include <memory>

#include "base/clock.h"

namespace troupe {

// Thread-safe. May be destroyed while calls are open.
class OpenCalls {
 public:
  OpenCalls();

  // Counts one more call until the last copy of the returned pointer is released.
  std::shared_ptr<void> Begin();

  // Waits until no call is open. False if one still is after `limit`.
  [[nodiscard]] bool Wait(Duration limit) const;

 private:
  struct Count;
  const std::shared_ptr<Count> count_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_OPEN_CALLS_H_
