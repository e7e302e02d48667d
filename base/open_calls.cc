#include "base/open_calls.h"

#include <condition_variable>
#include <mutex>

namespace troupe {

struct OpenCalls::Count {
  std::mutex mutex;
  std::condition_variable changed;
  int open = 0;
};

OpenCalls::OpenCalls() : count_(std::make_shared<Count>()) {}

std::shared_ptr<void> OpenCalls::Begin() {
  {
    const std::lock_guard lock(count_->mutex);
    ++count_->open;
  }
  return {nullptr, [count = count_](void*) {
            const std::lock_guard lock(count->mutex);
            --count->open;
            count->changed.notify_all();
          }};
}

bool OpenCalls::Wait(Duration limit) const {
  std::unique_lock lock(count_->mutex);
  return count_->changed.wait_for(lock, limit, [this] { return count_->open == 0; });
}

}  // namespace troupe
