// Ranks on GPUs. In builds without CUDA (TROUPE_CUDA) all functions return UNIMPLEMENTED.
#ifndef TROUPE_WORKER_RANK_CUDA_BACKEND_H_
#define TROUPE_WORKER_RANK_CUDA_BACKEND_H_

#include <memory>
#include <vector>

#include "base/status.h"
#include "kernels/backend/backend.h"
#include "troupe/v1/worker.pb.h"
#include "worker/rank/rank_backend_options.h"

namespace troupe {

// Makes a backend that owns its device and its device libraries.
StatusOr<std::unique_ptr<kernels::Backend>> MakeCudaRankBackend(const RankBackendOptions& options);

// Returns the first `count` GPUs of this host as the worker announces them; UNAVAILABLE if there
// are fewer. Allocates no device memory.
StatusOr<std::vector<v1::Device>> ProbeCudaDevices(int count);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_CUDA_BACKEND_H_
