// The directory of one checkpoint attempt: its names, its making and its removal.
#ifndef TROUPE_CHECKPOINT_ATTEMPT_H_
#define TROUPE_CHECKPOINT_ATTEMPT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

// "step-00000050-epoch-2-attempt-7-at-1764000000000000000", or "request-epoch-2-attempt-7-at-…" for
// step 0: one asked for, whose step the ranks decide. Step, epoch and attempt tell attempts of one
// catalog apart; the wall time of the intent in nanoseconds tells them from those that another
// catalog, or this one before it was lost, has left in the same folder.
std::string AttemptName(int64_t step, uint64_t group_epoch, int64_t attempt, int64_t wall_time_ns);

// True for what the function above returns, also without the time, and nothing else.
bool IsAttemptName(std::string_view name);

// "rank-00003.safetensors".
std::string ShardFileName(int rank);

// Makes the directory and what is missing above it, durably. All ranks call it: one that is there
// already is OK, the files in it are created exclusively.
Status MakeAttemptDirectory(FileSystem& files, const std::string& path);

// Removes the directory with its files, durably: the manifest first, so that what remains after a
// crash is no checkpoint. OK if there is none. FAILED_PRECONDITION if its name is not an attempt's,
// or it holds anything but regular files, of which nothing is removed then. Failpoints
// checkpoint.delete.*.
Status DeleteAttempt(FileSystem& files, const std::string& path);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_ATTEMPT_H_
