// Counts the devices of a cluster that are in use. Pure.
#ifndef TROUPE_REPORT_LIVE_DEVICE_USE_H_
#define TROUPE_REPORT_LIVE_DEVICE_USE_H_

#include <map>
#include <string>
#include <vector>

#include "troupe/v1/service.pb.h"

namespace troupe {

struct KindUse {
  int total = 0;
  int used = 0;
  // Neither used nor condemned, on a worker that is READY. Those that are set aside count, because
  // they are used where the others do not suffice.
  int free = 0;
};

struct DevicesInUse {
  std::map<std::string, KindUse> by_kind;
  // Ranks on workers with several kinds of devices, of jobs that are not among the known ones, so
  // that the kind of their device is not known. No kind counts them.
  int unknown = 0;
};

// `jobs`: known jobs; a rank of any other job is one that a worker reports. Where workers do not
// report the jobs that a caller may not see, `used` is a lower bound and `free` an upper one.
DevicesInUse CountDevices(const std::vector<v1::WorkerStatus>& workers,
                          const std::vector<v1::Job>& jobs);

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_DEVICE_USE_H_
