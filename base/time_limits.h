// Every time limit of the cluster, derived from one number: the coordinator's --detection-seconds
// (D).
//
// The order holds by construction: heartbeat < abort < lease = reconnect grace < watchdog < ticket.
// Workers receive heartbeat, lease (= D) and abort in Welcome and derive the others from the lease.
#ifndef TROUPE_BASE_TIME_LIMITS_H_
#define TROUPE_BASE_TIME_LIMITS_H_

#include <algorithm>

#include "base/clock.h"

namespace troupe {

struct TimeLimits {
  // The longest time between two messages of a worker.
  Duration heartbeat;
  // A worker that is silent for this long is lost; likewise, a worker that hears nothing for this
  // long treats the coordinator as lost.
  Duration lease;
  // A worker that lost its stream is lost unless it reconnects within this time. A restarted
  // coordinator waits this long for the workers of the jobs that it adopts.
  Duration reconnect_grace;
  // A rank that has not stopped this long after the request is killed.
  Duration abort;
  // The time after a secondary failure in which a primary failure may still arrive and become the
  // recorded cause.
  Duration drain;
  // The time from StartRanks until every rank is ready.
  Duration start;
  // The time from the first vote of a checkpoint attempt until its commit.
  Duration checkpoint_attempt;
  // Step reports are durable, and acknowledged, this long after they arrive.
  Duration report_flush;
  // The expected duration of the steps that one ticket grants. A ticket is renewed when half is
  // used, so that at least 60 s remain.
  Duration ticket_window;
  // The time for which a ticket is valid on its receiver's clock; longer than its window.
  Duration ticket_lifetime;
  // A job that may change its layout first waits this long for the capacity of its frozen plan.
  Duration layout_patience;
  // A job on a smaller layout grows back once the devices for its submitted layout have been
  // available for this long.
  Duration growth_patience;
  // The half-life of the weight of a host's fault (coordinator/state/blame.h).
  Duration blame_half_life;
  // A faulty host waits this long before its burn-in; the time doubles with each relapse, up to the
  // limit.
  Duration set_aside;
  Duration set_aside_limit;
  // The duration of a burn-in's computation.
  Duration burn_in;
  // The wait before the second consecutive recovery from a fault of the job itself; it doubles with
  // each further one, up to the limit.
  Duration restart_backoff;
  Duration restart_backoff_limit;
  // An absent worker and its leases are dropped once every ticket that it may hold has expired.
  Duration forget_worker;
  // While the pace of a job is unknown, the job counts as hung if its ranks finish no step for this
  // long (the job's hang_seconds can only lengthen it).
  Duration startup_allowance;
  // A rank process that has not reported idle within this time is killed.
  Duration process_start;
  // A connection without traffic for `keepalive` is probed, and closed if no answer arrives within
  // `keepalive_answer`.
  Duration keepalive;
  Duration keepalive_answer;
  // A worker must send the last of its requested log lines within this time.
  Duration logs;
  // A trace of future steps is given up after this time.
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
  limits.drain = d / 6;
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
  // gRPC does not probe more often than once a second.
  limits.keepalive = std::max<Duration>(std::chrono::seconds(1), 2 * d);
  limits.keepalive_answer = std::max<Duration>(std::chrono::seconds(1), d);
  limits.logs = std::max<Duration>(std::chrono::seconds(10), 3 * d);
  limits.trace = 4 * limits.ticket_window;
  return limits;
}

}  // namespace troupe

#endif  // TROUPE_BASE_TIME_LIMITS_H_
