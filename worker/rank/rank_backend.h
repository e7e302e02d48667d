// The device of a rank and the backend that runs programs on it, by the kind of device.
#ifndef TROUPE_WORKER_RANK_RANK_BACKEND_H_
#define TROUPE_WORKER_RANK_RANK_BACKEND_H_

#include <memory>

#include "base/status.h"
#include "kernels/backend/backend.h"
#include "troupe/v1/rank.pb.h"
#include "worker/rank/rank_backend_options.h"

namespace troupe {

// Takes the fields that `begin` has, which must outlive the result; the caller sets files, network,
// interruption and how devices are exchanged.
RankBackendOptions MakeRankBackendOptions(const v1::BeginRank& begin, int threads);

// The message by which a rank sends its device (RankPeers::exchange_devices).
v1::WorkerMessage DeviceMessage(const v1::BeginRank& begin, v1::RankDevice device);

// Has a case for each kind of device. UNIMPLEMENTED for any other kind, or if this build does not
// support such devices, UNAVAILABLE if the host has none; errors of the device.
StatusOr<std::unique_ptr<kernels::Backend>> MakeRankBackend(const RankBackendOptions& options);

// Returns `status`, with cause::kDeviceFault attached if this process has lost its device.
Status WithDeviceFault(Status status);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_BACKEND_H_
