// Records faults against workers, each of which represents its host, and against their devices, so
// that a bad host is not chosen again while another one is free. Pure: time is an argument.
//
// A fault weighs 1 when it happens, and its weight halves with each half-life. A device's fault
// also counts half on its host, so that a host with several failing devices is found. A host or
// device is set aside when its faults weigh kSetAsideWeight: two faults within a half-life, or a
// wrong folder at a job's first start. Jobs are then placed on it only if nothing else suffices
// (coordinator/state/preference.h), until a burn-in finds it sound
// (coordinator/faults/host_faults.h). Its faults are kept and decay, so the next fault sets it
// aside again, for longer.
#ifndef TROUPE_COORDINATOR_STATE_BLAME_H_
#define TROUPE_COORDINATOR_STATE_BLAME_H_

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

inline constexpr int kWholeHost = -1;  // used in place of a device index
inline constexpr double kSetAsideWeight = 1.5;

struct HostFault {
  std::string job;
  int device = kWholeHost;
  double weight = 1;  // as of `time`
  MonotonicTime time;
  std::string text;    // for example "RANK_CRASHED: rank 2 on worker-1, exit code 3"
  std::string folder;  // checkpoint folder that the host could not use; empty for other faults
};

struct SetAside {
  int device = kWholeHost;
  std::string reason;
  int64_t since_wall_ns = 0;
  MonotonicTime burn_in_time;   // earliest time of a burn-in
  int64_t burn_in_wall_ns = 0;  // burn_in_time as wall-clock time, for display
  Duration wait{};              // the wait that led to burn_in_time
};

struct HostBlame {
  std::deque<HostFault> faults;  // oldest first
  std::vector<SetAside> set_aside;
  Duration last_wait{};  // wait of the newest set-aside, until the faults have decayed
  uint64_t burn_in = 0;  // number of the request in flight; 0: none
  MonotonicTime burn_in_deadline;
};

using BlameBook = std::map<std::string, HostBlame>;  // by worker

// Returns the weight of a device's faults, or of its host's for kWholeHost.
double WeightOf(const HostBlame& blame, int device, MonotonicTime now, Duration half_life);

// Returns whether the device or its host is set aside.
bool IsSetAside(const HostBlame& blame, int device);

enum class Standing {
  kClean,    // has no faults, or they have decayed
  kSuspect,  // has a fault that has not decayed
  kSetAside,
};
// Returns the worse standing of the device and its host. A worker that is not in the book is clean.
Standing StandingOf(const BlameBook& book, const std::string& worker, int device, MonotonicTime now,
                    Duration half_life);

// Records `fault` against `worker`. Returns what is newly set aside, for example "worker-1" or
// "device 2 of worker-1". `wall_ns` is for display only.
std::vector<std::string> LayFault(const std::string& worker, HostFault fault,
                                  const TimeLimits& limits, int64_t wall_ns, BlameBook* book);

// Removes the faults of `job`, which were the job's own, and lifts the set-asides that depended on
// them. Returns the affected workers.
std::vector<std::string> WithdrawFaults(const std::string& job, const TimeLimits& limits,
                                        MonotonicTime now, BlameBook* book);

// Returns the folders of faults that have not decayed and could not be used; a burn-in tries them.
std::set<std::string> FoldersToTry(const HostBlame& blame, MonotonicTime now, Duration half_life);

// Lifts every set-aside of the host and its devices after a successful burn-in.
void LiftSetAside(HostBlame* blame);
// Schedules the next burn-in after one that failed or could not run. The wait doubles each time, up
// to a limit.
void PostponeBurnIn(const std::string& reason, const TimeLimits& limits, MonotonicTime now,
                    int64_t wall_ns, HostBlame* blame);

// Returns whether the record is empty or fully decayed and can be dropped.
bool HasDecayed(const HostBlame& blame, MonotonicTime now, Duration half_life);

// The catalog's form of the record. Weights are stored as of `now`: after a restart they decay from
// there, and the waits for burn-ins begin again.
v1::BlameRecord ToRecord(const std::string& worker, const HostBlame& blame, MonotonicTime now,
                         Duration half_life);
HostBlame FromRecord(const v1::BlameRecord& record, MonotonicTime now);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STATE_BLAME_H_
