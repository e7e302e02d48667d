// A slice whose ranks are threads of one process and devices of one client, for tests: each rank
// prepares its program by itself, and the ranks of a stage exchange their programs when they do.
#ifndef TROUPE_KERNELS_XLA_TESTING_SLICE_BACKEND_H_
#define TROUPE_KERNELS_XLA_TESTING_SLICE_BACKEND_H_

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "kernels/backend/backend.h"
#include "kernels/xla/runtime/joined_pieces.h"
#include "kernels/xla/runtime/program_cache.h"
#include "model/program/program.h"

namespace troupe::kernels::xla {

// Thread-safe. Ranks of a stage may meet again after all have come.
class SliceMeeting {
 public:
  using Programs = std::shared_ptr<const std::vector<model::Program>>;
  // Waits until each rank of the program's stage has come, and returns the programs of all in the
  // order of their numbers. DEADLINE_EXCEEDED if one does not come.
  StatusOr<Programs> Meet(const model::Program& program);

 private:
  struct Stage {
    std::map<int, model::Program> came;  // by number in the stage
    Programs all;                        // null: some have not come
  };

  std::mutex mutex_;
  std::condition_variable all_came_;
  std::map<int, std::shared_ptr<Stage>> stages_;  // by coordinate on the pipe
};

// The backend of one rank. Stage s of ranks R has the devices from s · R on. The only stage of a
// mesh gets no communicators, so that no collective can run on the host. Both arguments must
// outlive it.
std::unique_ptr<Backend> MakeSliceBackend(ProgramCache& programs, SliceMeeting& meeting,
                                          const StepUse& use = {});

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_TESTING_SLICE_BACKEND_H_
