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
// A process that has the variable without the flag --allow-failpoints ends with exit code 2, so
// that no environment can make a cluster fail by accident.
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

// The flag that permits the environment to list failpoints.
inline constexpr char kAllowFailpointsFlag[] = "--allow-failpoints";
inline constexpr char kAllowFailpointsHelp[] =
    "for tests: permits TROUPE_FAILPOINTS in the environment, which makes processes die, fail or "
    "wait";

// Arms the failpoints that the environment lists. INVALID_ARGUMENT if there are any and the flag is
// not given (`allowed`), and of TextFromEnvironment. Every process that has failpoints, or starts
// one that has, calls it.
Status ArmFailpointsFromEnvironment(bool allowed);

namespace internal {
extern std::atomic<bool> failpoints_armed;
Status HitArmedFailpoint(std::string_view name);
}  // namespace internal

// Whether any failpoint is armed. A process passes --allow-failpoints to those that it starts if
// so.
inline bool AnyFailpointArmed() {
  return internal::failpoints_armed.load(std::memory_order_relaxed);
}

// Returns OK unless `name` is armed. REQUIRES: `name` is in AllFailpoints().
inline Status HitFailpoint(std::string_view name) {
  if (!AnyFailpointArmed()) return OkStatus();
  return internal::HitArmedFailpoint(name);
}

}  // namespace troupe

#endif  // TROUPE_BASE_FAILPOINT_H_
