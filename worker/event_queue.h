// Events of other threads for the daemon's main thread, with a descriptor to poll for them.
#ifndef TROUPE_WORKER_EVENT_QUEUE_H_
#define TROUPE_WORKER_EVENT_QUEUE_H_

#include <deque>
#include <mutex>
#include <variant>

#include "worker/session/session.h"

namespace troupe {

// What other threads may say: the words of the stream, of the file chores, of the devices' watch and of a burn-in.
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
  // Everything pushed so far, in order.
  std::deque<QueuedEvent> TakeAll();
  // Readable while something waits.
  int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
  std::mutex mutex_;
  std::deque<QueuedEvent> events_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_EVENT_QUEUE_H_
