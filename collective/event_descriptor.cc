#include "collective/event_descriptor.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace troupe {

EventDescriptor::EventDescriptor() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  TROUPE_CHECK(descriptor_ >= 0, "eventfd: {}", std::strerror(errno));
}

EventDescriptor::~EventDescriptor() { ::close(descriptor_); }

void EventDescriptor::Signal() const {
  const uint64_t one = 1;
  // EAGAIN means that the counter is at its maximum, so the descriptor is readable already.
  while (::write(descriptor_, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

void EventDescriptor::Drain() const {
  uint64_t count = 0;
  while (::read(descriptor_, &count, sizeof(count)) < 0 && errno == EINTR) {
  }
}

}  // namespace troupe
