// Named points at which a test makes a process die, fail or wait, so that every step of a protocol
// can be interrupted in real processes. Always compiled in: unset, a point costs one relaxed load
// of an atomic.
//
//   TROUPE_FAILPOINTS="checkpoint.shard.synced=kill@2;checkpoint.shard.write=error"
//
// Actions: `kill` (SIGKILL to itself), `error` (HitFailpoint returns UNAVAILABLE), `delay:MS`
// (sleeps MS milliseconds). `@n` names the n-th hit of the process, from 1; without it the first
// hit (kill) or every hit (error, delay).
//
//   TROUPE_FAILPOINTS_ONCE_DIR=DIR
//
// makes a kill happen once in all processes that share DIR, also after their restart: whoever
// creates `DIR/NAME` dies, the others pass.
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

// Every name there is, in the order of the protocols.
std::span<const FailpointName> AllFailpoints();

// Arms what `text` says, replacing what was armed; empty disarms all. INVALID_ARGUMENT for an
// unknown name (all names are printed) or a bad action. Not thread-safe against HitFailpoint: for
// main and the set-up of tests.
Status ArmFailpoints(std::string_view text, std::string once_directory = {});

// Arms what the environment says. Every main calls it.
Status ArmFailpointsFromEnvironment();

namespace internal {
extern std::atomic<bool> failpoints_armed;
Status HitArmedFailpoint(std::string_view name);
}  // namespace internal

// OK unless `name` is armed. REQUIRES: `name` is in AllFailpoints().
inline Status HitFailpoint(std::string_view name) {
  if (!internal::failpoints_armed.load(std::memory_order_relaxed)) return OkStatus();
  return internal::HitArmedFailpoint(name);
}

}  // namespace troupe

#endif  // TROUPE_BASE_FAILPOINT_H_
