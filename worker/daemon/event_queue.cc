#include "worker/daemon/event_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "base/check.h"

namespace troupe {

EventQueue::EventQueue() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  TROUPE_CHECK(descriptor_ >= 0, "no file descriptor is left for an eventfd");
}

EventQueue::~EventQueue() { close(descriptor_); }

void EventQueue::Push(QueuedEvent event) {
  {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  eventfd_write(descriptor_, 1);
}

std::deque<QueuedEvent> EventQueue::TakeAll() {
  eventfd_t count = 0;
  eventfd_read(descriptor_, &count);
  std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

}  // namespace troupe
