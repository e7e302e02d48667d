// A library with NCCL's functions for tests, loaded as NCCL is: ranks are threads of one process, memory is the host's,
// every stream does at once what is put onto it, as soon as the other ranks' calls match. A call is over some polls later.
// What follows is exported beside NCCL's functions and steers them; found by dlsym.
#ifndef TROUPE_COLLECTIVE_NCCL_TESTING_FAKE_NCCL_H_
#define TROUPE_COLLECTIVE_NCCL_TESTING_FAKE_NCCL_H_

#include <atomic>

namespace troupe {

struct FakeNccl {
  std::atomic<int> version{22809};
  std::atomic<int> polls{2};  // for which a call is in progress after it is done
  // Results instead of success, where they are not 0.
  std::atomic<int> unique_id_result{0};
  std::atomic<int> init_result{0};   // of ncclCommInitRankConfig at once
  std::atomic<int> async_result{0};  // of every communicator from now on
  // Graphs that hold calls: while there are any, no communicator ends, and whoever ends one waits.
  std::atomic<int> graphs{0};
  // Counts.
  std::atomic<int> unique_ids{0};
  std::atomic<int> inits{0};
  std::atomic<int> limited_inits{0};  // of communicators whose blocks are limited
  std::atomic<int> aborts{0};
  std::atomic<int> destroys{0};
  std::atomic<int> calls{0};       // of collectives, sends and receives
  std::atomic<int> in_progress{0};  // answers "in progress"
  // Breaches of NCCL's rules: a call beside another on one communicator, on one that is in progress or gone.
  std::atomic<int> breaches{0};
};

// Of the library as a whole.
using GetFakeNccl = FakeNccl*();
inline constexpr const char* kGetFakeNccl = "TroupeGetFakeNccl";

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NCCL_TESTING_FAKE_NCCL_H_
