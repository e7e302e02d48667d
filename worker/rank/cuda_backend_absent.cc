// Implementation for builds without CUDA.
#include "worker/rank/cuda_backend.h"

namespace troupe {
namespace {

Status Absent() {
  return Unimplemented("this build has no CUDA; ./run build cuda makes one that has it");
}

}  // namespace

StatusOr<std::unique_ptr<kernels::Backend>> MakeCudaRankBackend(const RankBackendOptions&) {
  return Absent();
}

StatusOr<std::vector<v1::Device>> ProbeCudaDevices(int) { return Absent(); }

}  // namespace troupe
