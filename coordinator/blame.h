// Faults laid to workers, each of which stands for its host, and to their devices: what keeps a bad
// host from being chosen again while another is free. Pure: time comes in as an argument.
//
// A fault weighs 1 when it happens and half of what it did after each half-life. One of a device
// weighs half as much on its host, so that a host whose devices fail in turn is found too. What
// carries kSetAsideWeight, which is two faults within a half-life or a wrong folder at a job's
// first start, is set aside: it is placed on only where everything else does not suffice
// (coordinator/preference.h), until a burn-in finds it sound (coordinator/host_faults.h). Its
// faults stay and decay: the next one sets it aside again, for longer.
#ifndef TROUPE_COORDINATOR_BLAME_H_
#define TROUPE_COORDINATOR_BLAME_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/time_limits.h"
#include "troupe/v1/catalog.pb.h"

namespace troupe {

inline constexpr int kWholeHost = -1;  // in the place of a device's index
inline constexpr double kSetAsideWeight = 1.5;

struct HostFault {
  std::string job;
  int device = kWholeHost;
  double weight = 1;  // at `time`
  MonotonicTime time;
  std::string text;    // "RANK_CRASHED: rank 2 on worker-1, exit code 3"
  std::string folder;  // of checkpoints, which the host could not use; empty: another fault
};

struct SetAside {
  int device = kWholeHost;
  std::string reason;
  int64_t since_wall_ns = 0;
  MonotonicTime burn_in_time;   // not tried before
  int64_t burn_in_wall_ns = 0;  // the same, for people
  Duration wait{};              // that led to burn_in_time
};

struct HostBlame {
  std::deque<HostFault> faults;  // oldest first
  std::vector<SetAside> set_aside;
  Duration last_wait{};  // of the newest set-aside, until the faults have decayed
  uint64_t burn_in = 0;  // number of the request that is under way; 0: none
  MonotonicTime burn_in_deadline;
};

using BlameBook = std::map<std::string, HostBlame>;  // by worker

// The weight that a device carries, or (kWholeHost) its host.
double WeightOf(const HostBlame& blame, int device, MonotonicTime now, Duration half_life);

// Whether the device or its host is set aside.
bool IsSetAside(const HostBlame& blame, int device);

enum class Standing {
  kClean,    // what weighs on it has decayed, if there ever was anything
  kSuspect,  // a fault still weighs on it
  kSetAside,
};
// The worse one of the device's and its host's. A worker that the book does not have is clean.
Standing StandingOf(const BlameBook& book, const std::string& worker, int device, MonotonicTime now,
                    Duration half_life);

// Lays `fault` to `worker`. Returns what is newly set aside: "worker-1", "device 2 of worker-1".
// `wall_ns` is for people.
std::vector<std::string> LayFault(const std::string& worker, HostFault fault,
                                  const TimeLimits& limits, int64_t wall_ns, BlameBook* book);

// The faults of `job` were its own: they go, and with them what would not be set aside without
// them. Returns the workers concerned.
std::vector<std::string> WithdrawFaults(const std::string& job, const TimeLimits& limits,
                                        MonotonicTime now, BlameBook* book);

// The folders that could not be used, of faults that still weigh anything: a burn-in tries them.
std::set<std::string> FoldersToTry(const HostBlame& blame, MonotonicTime now, Duration half_life);

// A burn-in has found it sound: nothing of it is set aside any more.
void LiftSetAside(HostBlame* blame);
// It has not, or could not be made: tried again after twice the wait, up to a limit.
void PostponeBurnIn(const std::string& reason, const TimeLimits& limits, MonotonicTime now,
                    int64_t wall_ns, HostBlame* blame);

// Nothing of it is left that is worth keeping.
bool HasDecayed(const HostBlame& blame, MonotonicTime now, Duration half_life);

// As the catalog keeps it. Weights are those of `now`: a restarted coordinator lets them decay from
// there, and waits for burn-ins anew.
v1::BlameRecord ToRecord(const std::string& worker, const HostBlame& blame, MonotonicTime now,
                         Duration half_life);
HostBlame FromRecord(const v1::BlameRecord& record, MonotonicTime now);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_BLAME_H_
