// Ranks on devices of XLA, through a plugin that is loaded at run time (FindPlugin). In builds
// without XLA (TROUPE_XLA), what returns a Status returns UNIMPLEMENTED.
#ifndef TROUPE_WORKER_RANK_XLA_BACKEND_H_
#define TROUPE_WORKER_RANK_XLA_BACKEND_H_

#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "kernels/backend/backend.h"
#include "kernels/xla/pjrt/client.h"
#include "troupe/v1/worker.pb.h"
#include "worker/rank/rank_backend_options.h"
#include "worker/rank/tpu_chips.h"

namespace troupe {

// Makes a backend that owns its client of the plugin. The plugin stays loaded. libtpu reads once
// which chip its process has, so that a process with a chip makes no other backend
// (Backend::releases_device). UNIMPLEMENTED on a host with a TPU if the options have no plan.
StatusOr<std::unique_ptr<kernels::Backend>> MakeXlaRankBackend(const RankBackendOptions& options);

// Likewise, with this client. The ranks of a stage on TPU chips exchange their devices first, and
// their programs run as one on their slice.
StatusOr<std::unique_ptr<kernels::Backend>> MakeXlaRankBackend(
    const RankBackendOptions& options, std::unique_ptr<kernels::xla::Client> client);

// Whether this host has chips of a TPU; false in builds without XLA.
bool HostHasTpus();

// The devices of XLA on this host.
struct XlaDevices {
  v1::DeviceKind kind;
  std::vector<v1::Device> tpus;  // empty: the devices are the host's processors
};

// Returns the first `count` devices of this host as the worker announces them. Loads the plugin; a
// plugin for TPUs opens no device. Errors: UNAVAILABLE, with the reason, if there is no plugin, if
// it finds no device, or if it is for other devices than processors and TPUs; on a host with chips
// of a TPU also if the plugin does not know them, with the variable that must name libtpu; those of
// FindTpuHost and TpuDevices.
StatusOr<XlaDevices> ProbeXlaDevices(int count);
// Likewise, on a host that has these chips.
StatusOr<XlaDevices> ProbeXlaDevices(int count, const std::optional<TpuChips>& chips);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_XLA_BACKEND_H_
