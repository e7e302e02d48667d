// Numbers a daemon's lives: later lives with the same name have higher numbers, even if the clock
// was set back.
#ifndef TROUPE_WORKER_DAEMON_INCARNATION_H_
#define TROUPE_WORKER_DAEMON_INCARNATION_H_

#include <cstdint>
#include <string>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

// Returns `now` (nanoseconds since the Unix epoch) or the number of the last life of `name` in
// `directory` plus one, whichever is higher; stores it there before it returns. DATA_LOSS if the
// stored text is not a number; errors of the files.
StatusOr<uint64_t> NextIncarnation(FileSystem& files, const std::string& directory,
                                   const std::string& name, uint64_t now);

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_INCARNATION_H_
