// A Linux eventfd: one thread wakes others that poll. Thread-safe.
#ifndef TROUPE_COLLECTIVE_EVENT_DESCRIPTOR_H_
#define TROUPE_COLLECTIVE_EVENT_DESCRIPTOR_H_

namespace troupe {

class EventDescriptor {
 public:
  // Terminates the process if no file descriptor is left: without the event nothing could end a
  // wait from outside.
  EventDescriptor();
  EventDescriptor(const EventDescriptor&) = delete;
  EventDescriptor& operator=(const EventDescriptor&) = delete;
  ~EventDescriptor();

  int get() const { return descriptor_; }

  // Makes the descriptor readable until Drain.
  void Signal() const;
  void Drain() const;

 private:
  const int descriptor_;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_EVENT_DESCRIPTOR_H_
