// The flight records that a rank leaves beside its log: one for each group epoch that failed, of
// which the first and the newest are kept.
#ifndef TROUPE_WORKER_RANK_FLIGHT_FILES_H_
#define TROUPE_WORKER_RANK_FLIGHT_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"

namespace troupe {

// The first of a rank and so many of the newest.
inline constexpr size_t kNewestFlightRecords = 7;

// "…/rank-3.worker-0.epoch-2.flight.json" beside "…/rank-3.worker-0.log".
std::string FlightRecordPath(const std::string& log_path, uint64_t group_epoch);

// Which of the files `names`, beside the log of that name, are flight records of the rank that go.
std::vector<std::string> FlightRecordsToDrop(const std::vector<std::string>& names,
                                             const std::string& log_name);

// Removes them. What cannot be removed stays, and is tried again after the next record.
void DropFlightRecords(FileSystem& files, const std::string& log_path);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_FLIGHT_FILES_H_
