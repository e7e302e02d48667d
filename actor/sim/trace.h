// The record of a simulation: a hash over every event, and the last events as text for debugging.
//
// Two runs of one seed must have the same hash; if they differ, some code depends on a value that
// the seed does not determine.
#ifndef TROUPE_ACTOR_SIM_TRACE_H_
#define TROUPE_ACTOR_SIM_TRACE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace troupe {

class Trace {
 public:
  // Keeps the text of the last `kept_events` events.
  explicit Trace(size_t kept_events) : kept_(kept_events) {}

  // `kind` and `what` must outlive the trace (they are string literals). `where` is a node or
  // actor; `detail` is any number that distinguishes events.
  void Record(MonotonicTime time, std::string_view kind, uint64_t where, std::string_view what,
              uint64_t detail = 0);

  // Mixes `value`, the payload of the next event, into the hash without counting an event.
  void Fold(uint64_t value);

  uint64_t hash() const { return hash_; }
  uint64_t events() const { return events_; }
  // The kept events, oldest first, one line each.
  std::string Text() const;

 private:
  struct Entry {
    MonotonicTime time;
    std::string_view kind;
    uint64_t where = 0;
    std::string_view what;
    uint64_t detail = 0;
  };

  uint64_t hash_ = 0x74726F757065;
  uint64_t events_ = 0;
  std::vector<Entry> kept_;  // a ring: event e is stored at index e modulo its size
};

// A 64-bit hash of `bytes`, identical on all little-endian machines. Not cryptographic.
uint64_t HashBytes(std::string_view bytes);

}  // namespace troupe

#endif  // TROUPE_ACTOR_SIM_TRACE_H_
