// The number of a daemon's life: later lives of one name are higher, also where the clock went back.
#ifndef TROUPE_WORKER_INCARNATION_H_
#define TROUPE_WORKER_INCARNATION_H_

#include <cstdint>
#include <string>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

// `now` (nanoseconds since the Unix epoch), or one more than the last life of `name` that `directory`
// knows, whichever is higher; remembered there before it is returned. DATA_LOSS where what is there
// is no number; errors of the files.
StatusOr<uint64_t> NextIncarnation(FileSystem& files, const std::string& directory,
                                   const std::string& name, uint64_t now);

}  // namespace troupe

#endif  // TROUPE_WORKER_INCARNATION_H_
