// Names, creates and removes the directory of one checkpoint attempt.
#ifndef TROUPE_CHECKPOINT_FORMAT_ATTEMPT_H_
#define TROUPE_CHECKPOINT_FORMAT_ATTEMPT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

// Returns "step-00000050-epoch-2-attempt-7-at-1764000000000000000", or
// "request-epoch-2-attempt-7-at-…" for step 0: a requested checkpoint; the ranks decide its step.
// Step, epoch and attempt distinguish the attempts of one catalog. The wall time of the intent in
// nanoseconds distinguishes them from attempts that another catalog, or this one before it was
// lost, has left in the same folder.
std::string AttemptName(int64_t step, uint64_t group_epoch, int64_t attempt, int64_t wall_time_ns);

// Returns true for the names that AttemptName returns, also without the time, and for no others.
bool IsAttemptName(std::string_view name);

// Returns "rank-00003.safetensors".
std::string ShardFileName(int rank);

// Durably creates the directory and its missing parents. All ranks call it: an existing directory
// is OK, because the files in it are created exclusively.
Status MakeAttemptDirectory(FileSystem& files, const std::string& path);

// Durably removes the directory with its files. The manifest is removed first, so that a crash
// leaves no valid checkpoint. OK if there is no such directory. FAILED_PRECONDITION, before
// anything is removed, if its name is not an attempt's or if it holds anything but regular files.
// Failpoints checkpoint.delete.*.
Status DeleteAttempt(FileSystem& files, const std::string& path);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_FORMAT_ATTEMPT_H_
