// Implementation for builds without XLA.
#include "worker/rank/xla_backend.h"

namespace troupe {
namespace {

Status Absent() {
  return Unimplemented(
      "this build has no XLA: the header of its plugins was missing when it was configured");
}

}  // namespace

StatusOr<std::unique_ptr<kernels::Backend>> MakeXlaRankBackend(const RankBackendOptions&) {
  return Absent();
}

bool HostHasTpus() { return false; }

StatusOr<XlaDevices> ProbeXlaDevices(int) { return Absent(); }

StatusOr<XlaDevices> ProbeXlaDevices(int, const std::optional<TpuChips>&) { return Absent(); }

}  // namespace troupe
