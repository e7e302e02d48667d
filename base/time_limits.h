// Every time limit of the cluster, derived from one number: the coordinator's --detection-seconds
// (D).
//
// The ladder holds by construction: heartbeat < abort < lease = reconnect grace < watchdog <
// ticket. Workers learn D's descendants from Welcome; both sides compute the others from here.
#ifndef TROUPE_BASE_TIME_LIMITS_H_
#define TROUPE_BASE_TIME_LIMITS_H_

#include <algorithm>

#include "base/clock.h"

namespace troupe {

struct TimeLimits {
  // A worker says something at least so often.
  Duration heartbeat;
  // A worker that says nothing for so long is lost; so is, to a worker, the coordinator.
  Duration lease;
  // A worker whose stream closed is lost unless it is back by then. A restarted coordinator waits
  // so long for the workers of the jobs it adopts.
  Duration reconnect_grace;
  // A rank that was told to stop and has not by then is killed.
  Duration abort;
  // After a secondary failure, how long a primary one may take to arrive and be the recorded cause.
  Duration settle;
  // From StartRanks until every rank is ready.
  Duration start;
  // From the first vote of a checkpoint attempt until its commit.
  Duration checkpoint_attempt;
  // Step reports are durable, and acknowledged, so long after they arrive.
  Duration report_flush;
  // Steps worth this much time are granted at once; renewed when half is used, so that at least 60
  // s remain.
  Duration ticket_window;
  // How long a ticket is valid on its receiver's clock: longer than its window.
  Duration ticket_lifetime;
  // A job that may change its layout waits so long for the capacity of its frozen plan first.
  Duration layout_patience;
  // The wait before the second consecutive recovery without progress; doubles with each further one
  // up to the limit.
  Duration restart_backoff;
  Duration restart_backoff_limit;
  // An absent worker is forgotten, and its leases with it, once every ticket it may hold has ended.
  Duration forget_worker;
  // A job whose ranks finish no step for so long hangs (the job's hang_seconds only lengthens it).
  Duration startup_allowance;
};

// REQUIRES: detection_seconds > 0 and finite.
inline TimeLimits MakeTimeLimits(double detection_seconds) {
  const Duration d = FromSeconds(detection_seconds);
  TimeLimits limits;
  limits.heartbeat = d / 6;
  limits.lease = d;
  limits.reconnect_grace = d;
  limits.abort = d / 2;
  limits.settle = d / 6;
  limits.start = std::max<Duration>(std::chrono::seconds(120), 40 * d);
  limits.checkpoint_attempt = std::max<Duration>(std::chrono::seconds(600), 40 * d);
  limits.report_flush = std::min<Duration>(std::chrono::milliseconds(200), d / 6);
  limits.ticket_window = std::max<Duration>(std::chrono::seconds(150), 20 * d);
  limits.ticket_lifetime = limits.ticket_window + limits.ticket_window / 5;
  limits.layout_patience = 2 * d;
  limits.restart_backoff = d / 12;
  limits.restart_backoff_limit = std::max<Duration>(std::chrono::seconds(5), d);
  limits.forget_worker = 2 * limits.ticket_lifetime;
  limits.startup_allowance = std::max<Duration>(std::chrono::seconds(60), 20 * d);
  return limits;
}

}  // namespace troupe

#endif  // TROUPE_BASE_TIME_LIMITS_H_
