// The flight records that a rank leaves next to its log: one for each failed group epoch. The first
// and the newest are kept.
#ifndef TROUPE_WORKER_RANK_FLIGHT_FILES_H_
#define TROUPE_WORKER_RANK_FLIGHT_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"

namespace troupe {

// Number of newest records kept in addition to the rank's first.
inline constexpr size_t kNewestFlightRecords = 7;

// Returns "…/rank-3.worker-0.epoch-2.flight.json" for the log "…/rank-3.worker-0.log".
std::string FlightRecordPath(const std::string& log_path, uint64_t group_epoch);

// Returns those of the files `names`, in the folder of the log of that name, that are flight
// records of the rank and are to be removed.
std::vector<std::string> FlightRecordsToDrop(const std::vector<std::string>& names,
                                             const std::string& log_name);

// Removes them. A record that cannot be removed stays and is tried again after the next record.
void DropFlightRecords(FileSystem& files, const std::string& log_path);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_FLIGHT_FILES_H_
