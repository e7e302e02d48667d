// What an Xid, the error report of NVIDIA's driver, says of the process that ran and of its device.
//
// Source: "Analyzing Xid Errors with the Xid Catalog" (docs.nvidia.com/deploy/xid-errors), for Ampere
// and later. Its column "immediate action" decides: RESTART_APP replaces the rank's process;
// RESET_GPU, RESTART_VM, RESTART_BM and the work flows that end in a reset condemn the device; IGNORE
// degrades it where the report speaks of its hardware and is nothing where it does not.
#ifndef TROUPE_WORKER_HEALTH_XID_CATALOG_H_
#define TROUPE_WORKER_HEALTH_XID_CATALOG_H_

#include <cstdint>
#include <span>
#include <string>

#include "worker/health/device_health.h"

namespace troupe {

// Codes `first` to `last`.
struct XidRule {
  uint64_t first = 0;
  uint64_t last = 0;
  Health health = Health::kHealthy;
  const char* meaning = "";
};

// By code, without overlaps.
std::span<const XidRule> AllXidRules();

// The rule of `xid`. One that the catalog does not know costs the process: nobody can say what it
// computed.
XidRule FindXidRule(uint64_t xid);

// "Xid 79 (GPU has fallen off the bus)".
std::string DescribeXid(uint64_t xid);

}  // namespace troupe

#endif  // TROUPE_WORKER_HEALTH_XID_CATALOG_H_
