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
  // A job on a smaller layout grows back once the devices of its submitted one have been there for so
  // long.
  Duration growth_patience;
  // Half-life of the weight of a fault on its host (coordinator/blame.h).
  Duration blame_half_life;
  // A host is set aside for so long before its burn-in; doubles with each relapse up to the limit.
  Duration set_aside;
  Duration set_aside_limit;
  // How long a burn-in computes.
  Duration burn_in;
  // The wait before the second consecutive recovery from a fault of the job's own; doubles with each further one
  // up to the limit.
  Duration restart_backoff;
  Duration restart_backoff_limit;
  // An absent worker is forgotten, and its leases with it, once every ticket it may hold has ended.
  Duration forget_worker;
  // Until the pace of a job is known, it hangs once its ranks have finished no step for so long
  // (the job's hang_seconds only lengthens it).
  Duration startup_allowance;
  // A rank process that has not said by then that it is idle is killed.
  Duration process_start;
  // A connection that carries nothing for so long is asked whether its other end lives, and closed
  // if there is no answer within the second.
  Duration keepalive;
  Duration keepalive_answer;
  // A worker that was asked for lines of its logs has that long to send the last of them.
  Duration logs;
  // A trace of steps that are yet to come is given up after so long.
  Duration trace;
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
  limits.growth_patience = 40 * d;
  limits.blame_half_life = 600 * d;
  limits.set_aside = 100 * d;
  limits.set_aside_limit = 2400 * d;
  limits.burn_in = 10 * d;
  limits.restart_backoff = d / 12;
  limits.restart_backoff_limit = std::max<Duration>(std::chrono::seconds(5), d);
  limits.forget_worker = 2 * limits.ticket_lifetime;
  limits.startup_allowance = std::max<Duration>(std::chrono::seconds(60), 20 * d);
  limits.process_start = std::max<Duration>(std::chrono::seconds(30), 10 * d);
  // gRPC asks no more often than once a second.
  limits.keepalive = std::max<Duration>(std::chrono::seconds(1), 2 * d);
  limits.keepalive_answer = std::max<Duration>(std::chrono::seconds(1), d);
  limits.logs = std::max<Duration>(std::chrono::seconds(10), 3 * d);
  limits.trace = 4 * limits.ticket_window;
  return limits;
}

}  // namespace troupe

#endif  // TROUPE_BASE_TIME_LIMITS_H_
