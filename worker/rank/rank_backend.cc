#include "worker/rank/rank_backend.h"

#include <algorithm>
#include <utility>

#include "base/failure_cause.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/runtime/device_loss.h"
#include "plan/job/job_choices.h"
#include "worker/rank/cuda_backend.h"

namespace troupe {

RankBackendOptions MakeRankBackendOptions(const v1::BeginRank& begin, int threads) {
  RankBackendOptions options;
  options.devices = ChoicesOf(begin.start().spec()).devices;
  options.device = begin.start().plan().ranks(begin.rank()).device();
  options.threads = threads;
  options.folder = begin.log_path().substr(0, begin.log_path().rfind('/'));
  options.wait_limit = FromSeconds(begin.hang_seconds());
  // Other ranks may be late, so the limit is at least as long as the coordinator waits for
  // all.
  options.connect_limit =
      FromSeconds(std::max(begin.start().start_seconds(), begin.hang_seconds()));
  options.close_limit = FromSeconds(begin.abort_seconds());
  return options;
}

StatusOr<std::unique_ptr<kernels::Backend>> MakeRankBackend(const RankBackendOptions& options) {
  if (options.devices == v1::DEVICES_CUDA) {
    auto made = MakeCudaRankBackend(options);
    // The device is unavailable now; no other rank is the cause.
    if (made.status().code() == StatusCode::kUnavailable)
      return WithCause(made.status(), cause::kDeviceFault);
    return made;
  }
  return kernels::CpuBackend::Make({.threads = options.threads});
}

Status WithDeviceFault(Status status) {
  const bool lost = !kernels::cuda::DeviceLossOf(status).empty();
  return lost ? WithCause(std::move(status), cause::kDeviceFault) : status;
}

}  // namespace troupe
