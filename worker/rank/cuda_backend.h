// Ranks on GPUs. In builds without CUDA (TROUPE_CUDA) all of it answers UNIMPLEMENTED.
#ifndef TROUPE_WORKER_RANK_CUDA_BACKEND_H_
#define TROUPE_WORKER_RANK_CUDA_BACKEND_H_

#include <memory>
#include <vector>

#include "base/status.h"
#include "kernels/backend.h"
#include "troupe/v1/worker.pb.h"
#include "worker/rank/rank_backend.h"

namespace troupe {

// With the device and the libraries that it is over.
StatusOr<std::unique_ptr<kernels::Backend>> MakeCudaRankBackend(const RankBackendOptions& options);

// The first `count` GPUs of this host, as they are announced. UNAVAILABLE where there are fewer. Takes no memory of them.
StatusOr<std::vector<v1::Device>> ProbeCudaDevices(int count);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_CUDA_BACKEND_H_
