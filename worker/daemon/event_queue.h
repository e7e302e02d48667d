// Passes events of other threads to the daemon's main thread, with a descriptor to poll.
#ifndef TROUPE_WORKER_DAEMON_EVENT_QUEUE_H_
#define TROUPE_WORKER_DAEMON_EVENT_QUEUE_H_

#include <deque>
#include <mutex>
#include <variant>

#include "worker/session/event.h"

namespace troupe {

// Events of other threads: of the stream, the file chores, the device watch and a burn-in.
using QueuedEvent =
    std::variant<session::StreamMessage, session::StreamClosed, session::CheckpointGone,
                 session::CheckpointReadBack, session::DeviceFault, session::BurnInEnded>;

// Thread-safe.
class EventQueue {
 public:
  EventQueue();
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  void Push(QueuedEvent event);
  // Returns everything pushed so far, in order.
  std::deque<QueuedEvent> TakeAll();
  // Readable while an event waits.
  int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
  std::mutex mutex_;
  std::deque<QueuedEvent> events_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_EVENT_QUEUE_H_
