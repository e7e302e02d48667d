#include "worker/rank/rank_backend.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/failure_cause.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/runtime/device_loss.h"
#include "plan/job/job_rules.h"
#include "plan/job/key_schema.h"
#include "troupe/v1/job.pb.h"
#include "worker/executor/rank_program.h"
#include "worker/rank/cuda_backend.h"
#include "worker/rank/xla_backend.h"

namespace troupe {

RankBackendOptions MakeRankBackendOptions(const v1::BeginRank& begin, int threads) {
  RankBackendOptions options;
  const std::string& devices = begin.start().spec().devices();
  if (!devices.empty()) options.devices = devices;
  options.device = begin.start().plan().ranks(begin.rank()).device();
  options.threads = threads;
  options.tuning_folder = begin.tuning_directory();
  options.executable_folder = begin.executable_directory();
  const auto& compiler_options = begin.start().plan().compiler_options();
  options.compiler_options.assign(compiler_options.begin(), compiler_options.end());
  const v1::JobSpec& spec = begin.start().spec();
  options.reads_gradients = spec.training().norms_interval() > 0;
  options.evaluates = HoldsOutSamples(spec.data());
  options.peers.plan = &begin.start().plan();
  options.peers.rank = begin.rank();
  options.peers.make_program = [&start = begin.start()](int rank) -> StatusOr<model::Program> {
    TROUPE_ASSIGN_OR_RETURN(RankProgram made, MakeRankProgram(start.spec(), start.plan(), rank));
    return std::move(made.program);
  };
  options.wait_limit = FromSeconds(begin.hang_seconds());
  // Other ranks may be late, so the limit is at least as long as the coordinator waits for
  // all.
  options.connect_limit =
      FromSeconds(std::max(begin.start().start_seconds(), begin.hang_seconds()));
  options.close_limit = FromSeconds(begin.abort_seconds());
  return options;
}

v1::WorkerMessage DeviceMessage(const v1::BeginRank& begin, v1::RankDevice device) {
  v1::WorkerMessage message;
  device.set_job(begin.start().job());
  device.set_group_epoch(begin.start().group_epoch());
  device.set_rank(begin.rank());
  *message.mutable_rank_device() = std::move(device);
  return message;
}

StatusOr<std::unique_ptr<kernels::Backend>> MakeRankBackend(const RankBackendOptions& options) {
  const std::optional<v1::Devices> devices = FindWord<v1::Devices>(options.devices);
  if (devices == v1::DEVICES_CPU) return kernels::CpuBackend::Make({.threads = options.threads});
  if (devices == v1::DEVICES_CUDA) {
    auto made = MakeCudaRankBackend(options);
    // The device is unavailable now; no other rank is the cause.
    if (made.status().code() == StatusCode::kUnavailable)
      return WithCause(made.status(), cause::kDeviceFault);
    return made;
  }
  if (devices == v1::DEVICES_XLA) return MakeXlaRankBackend(options);
  return Unimplemented("ranks cannot run on devices \"{}\"", options.devices);
}

Status WithDeviceFault(Status status) {
  const bool lost = !kernels::cuda::DeviceLossOf(status).empty();
  return lost ? WithCause(std::move(status), cause::kDeviceFault) : status;
}

}  // namespace troupe
