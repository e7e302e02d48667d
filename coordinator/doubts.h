// A commit that one worker found damaged is doubted until another reading decides: what one host
// reads wrongly (a disk mounted in the folder's place, bad memory) is no reason to give a
// checkpoint up. It is read back by a worker of another host, or of another worker where there is
// one host alone, or by the same one once more. Damaged twice: quarantined. Whole: a commit like
// before, and the first reader's host is to blame. All pure.
//
// A doubt is durable; who reads it is not: a restarted coordinator asks again.
#ifndef TROUPE_COORDINATOR_DOUBTS_H_
#define TROUPE_COORDINATOR_DOUBTS_H_

#include <optional>
#include <string>

#include "coordinator/job.h"
#include "coordinator/turn.h"

namespace troupe {

// `worker` found the commit at `path` damaged. The second word of another host quarantines it; the
// first one has it read back. No effect unless there is such a commit.
void DoubtCommit(Job& job, const std::string& path, const std::string& reason,
                 const std::string& worker, Turn& turn);

// The answer to a reading that settles a doubt; false if none was asked for from `worker`.
bool OnDoubtRead(Job& job, const v1::CheckpointVerified& message, const std::string& worker,
                 Turn& turn);

// Ends the doubt about attempt `number`, which `reader` read whole: it is a commit like before.
// Nobody is to blame: it may have been mended. REQUIRES: it is doubted.
void EndDoubt(Job& job, int64_t number, const std::string& reader, Turn& turn);

// Asks the next reader where one has gone away or has not answered in time, and gives a reading up
// where none is left: its doubt stays, and the job is restored from it again.
void LookAfterDoubts(Job& job, Turn& turn);

// When LookAfterDoubts has something to do.
std::optional<MonotonicTime> NextDoubtDeadline(const Job& job);

// The commit that the job would be restored from is being read: what to say while it waits for
// that. Empty: it need not wait.
std::string AwaitedReading(const Job& job);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_DOUBTS_H_
