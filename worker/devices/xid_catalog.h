// The meaning of an Xid, an error report of NVIDIA's driver, for the running process and for its
// device.
//
// Source: "Analyzing Xid Errors with the Xid Catalog" (docs.nvidia.com/deploy/xid-errors), for
// Ampere and later. Its column "immediate action" decides: RESTART_APP replaces the rank's process;
// RESET_GPU, RESTART_VM, RESTART_BM and the work flows that end in a reset condemn the device;
// IGNORE degrades the device if the report is about its hardware and has no effect otherwise.
#ifndef TROUPE_WORKER_DEVICES_XID_CATALOG_H_
#define TROUPE_WORKER_DEVICES_XID_CATALOG_H_

#include <cstdint>
#include <span>
#include <string>

#include "worker/devices/health.h"

namespace troupe {

// Rule for codes `first` to `last`.
struct XidRule {
  uint64_t first = 0;
  uint64_t last = 0;
  Health health = Health::kHealthy;
  const char* meaning = "";
};

// All rules, sorted by code, without overlaps.
std::span<const XidRule> AllXidRules();

// Returns the rule of `xid`. An unknown Xid replaces the process, because its results cannot be
// trusted.
XidRule FindXidRule(uint64_t xid);

// Returns "Xid 79 (GPU has fallen off the bus)".
std::string DescribeXid(uint64_t xid);

}  // namespace troupe

#endif  // TROUPE_WORKER_DEVICES_XID_CATALOG_H_
