// Named points at which a test makes a process die, fail or wait, so that every step of a protocol
// can be interrupted in real processes. Failpoints are always compiled in; an unarmed point costs
// one relaxed atomic load.
//
//   TROUPE_FAILPOINTS="checkpoint.shard.synced=kill@2;checkpoint.shard.write=error"
//
// The actions are `kill` (SIGKILL to itself), `error` (HitFailpoint returns UNAVAILABLE) and
// `delay:MS` (sleeps MS milliseconds). `@n` selects the n-th hit in the process, counted from 1;
// without it the action applies to the first hit (kill) or to every hit (error, delay).
//
//   TROUPE_FAILPOINTS_ONCE_DIR=DIR
//
// makes a kill happen once among all processes that share DIR, even after they restart: the process
// that creates `DIR/NAME` dies, the others continue.
#ifndef TROUPE_BASE_FAILPOINT_H_
#define TROUPE_BASE_FAILPOINT_H_

#include <atomic>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

struct FailpointName {
  std::string_view name;
  std::string_view where;
};

// Returns all failpoints, in the order of the protocols.
std::span<const FailpointName> AllFailpoints();

// Arms the failpoints that `text` lists and disarms all others; an empty `text` disarms all.
// INVALID_ARGUMENT for an unknown name (the message lists all names) or a bad action. Not
// thread-safe with respect to HitFailpoint: call it from main and from test set-up only.
Status ArmFailpoints(std::string_view text, std::string once_directory = {});

// Arms the failpoints that the environment lists. Every main calls it.
Status ArmFailpointsFromEnvironment();

namespace internal {
extern std::atomic<bool> failpoints_armed;
Status HitArmedFailpoint(std::string_view name);
}  // namespace internal

// Returns OK unless `name` is armed. REQUIRES: `name` is in AllFailpoints().
inline Status HitFailpoint(std::string_view name) {
  if (!internal::failpoints_armed.load(std::memory_order_relaxed)) return OkStatus();
  return internal::HitArmedFailpoint(name);
}

}  // namespace troupe

#endif  // TROUPE_BASE_FAILPOINT_H_
