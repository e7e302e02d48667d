// A library with NCCL's functions for tests, loaded like NCCL: ranks are threads of one process,
// memory is the host's, and a stream executes each operation as soon as the calls of all ranks
// match. A call completes after a few polls. The following symbols are exported in addition to
// NCCL's functions, found by dlsym, and control the fake.
#ifndef TROUPE_COLLECTIVE_NCCL_TESTING_FAKE_NCCL_H_
#define TROUPE_COLLECTIVE_NCCL_TESTING_FAKE_NCCL_H_

#include <atomic>

namespace troupe {

struct FakeNccl {
  std::atomic<int> version{22809};
  std::atomic<int> polls{2};  // polls for which a call stays in progress
  // Results returned instead of success, if not 0.
  std::atomic<int> unique_id_result{0};
  std::atomic<int> init_result{0};   // returned by ncclCommInitRankConfig at once
  std::atomic<int> async_result{0};  // reported by every communicator from now on
  // The number of graphs that hold calls: while there are any, ending a communicator blocks.
  std::atomic<int> graphs{0};
  // Counters.
  std::atomic<int> unique_ids{0};
  std::atomic<int> inits{0};
  std::atomic<int> limited_inits{0};  // communicators with limited blocks
  std::atomic<int> aborts{0};
  std::atomic<int> destroys{0};
  std::atomic<int> calls{0};        // collectives, sends and receives
  std::atomic<int> in_progress{0};  // results "in progress"
  // Breaches of NCCL's rules: concurrent calls on one communicator, or a call on one that is in
  // progress or destroyed.
  std::atomic<int> breaches{0};
};

// Returns the state of the loaded library.
using GetFakeNccl = FakeNccl*();
inline constexpr const char* kGetFakeNccl = "TroupeGetFakeNccl";

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NCCL_TESTING_FAKE_NCCL_H_
