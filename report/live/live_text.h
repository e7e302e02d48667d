// Texts of jobs and workers, as the live pages have them. None of them is markup. Pure.
#ifndef TROUPE_REPORT_LIVE_LIVE_TEXT_H_
#define TROUPE_REPORT_LIVE_LIVE_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "troupe/v1/service.pb.h"

namespace troupe {

// Returns `text` as PrintableLines does, its end as "… (N more characters)" beyond
// `most_characters`.
std::string Clipped(std::string_view text, size_t most_characters);

// Returns "2026-11-24 06:37 UTC" for nanoseconds since the Unix epoch. It has no seconds, so that a
// page on which nothing else changes stays the same for a minute.
std::string MinuteText(int64_t wall_time_ns);

// Returns why the job moves, waits or has failed, as `troupe list` does, with the failure's
// message.
std::string ReasonOf(const v1::Job& job);

// Returns the models of the devices, the cores of the host and the memory of all devices, "NVIDIA
// H200, 64 cores, 1.13 TB", without those that are not known.
std::string DeviceFacts(const v1::WorkerStatus& worker);

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_LIVE_TEXT_H_
