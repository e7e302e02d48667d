// Texts of failures, ranks and workers, which the tables of the command line and the web page have
// in common. None of them is markup, and what others wrote in them is not made printable. Pure.
#ifndef TROUPE_REPORT_TEXT_STATUS_TEXT_H_
#define TROUPE_REPORT_TEXT_STATUS_TEXT_H_

#include <string>
#include <vector>

#include "troupe/v1/service.pb.h"

namespace troupe {

// Stands below tables and drawings that name islands.
inline constexpr char kIslandMeaning[] =
    "an island: the workers that the fastest links join, by default one host";

// Returns "RANK_CRASHED of rank 3 on worker-1, signal 9, in F0.1: message".
std::string FailureLine(const v1::Failure& failure);
// Returns the coordinates on the axes of more than one rank, "pipe 0, tensor 1".
std::string CoordinatesText(const v1::MeshDegrees& layout, const v1::MeshCoordinates& place);

// Returns "0-3,8", or "0-3,8 (shared by 2 ranks)"; empty if the rank is not bound to cores.
std::string CoreRanges(const v1::CoreSet& set);
// Returns "8 cuda", or the numbers of several kinds, "1 cpu, 8 cuda".
std::string DeviceCounts(const v1::WorkerStatus& worker);
// Returns a line for each reason not to use a part of the worker: what is condemned, drained or set
// aside.
std::vector<std::string> Restrictions(const v1::WorkerStatus& worker);

}  // namespace troupe

#endif  // TROUPE_REPORT_TEXT_STATUS_TEXT_H_
