// The device of a rank and what runs programs on it, as the job's `devices` says.
#ifndef TROUPE_WORKER_RANK_RANK_BACKEND_H_
#define TROUPE_WORKER_RANK_RANK_BACKEND_H_

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/status.h"
#include "collective/network.h"
#include "kernels/backend.h"
#include "troupe/v1/rank.pb.h"

namespace troupe {

struct RankBackendOptions {
  std::string devices = "cpu";  // of the job: "cpu" or "cuda"
  int device = 0;               // index on the worker
  int threads = 1;              // of the rank
  FileSystem* files = nullptr;
  // Of what device libraries find best, kept between jobs; empty: not kept.
  std::string folder;
  CollectiveNetwork* network = nullptr;  // the host's, which outlives the backend
  Duration wait_limit{};  // of one wait of the host for its device
  // Of making and of closing one group of device communicators.
  Duration connect_limit{};
  Duration close_limit{};
  // Ends such a wait where it is not OK, as an abort of `network` does. Asked from any thread.
  std::function<Status()> interruption;
};

// Those that `begin` tells; files, network and interruption are the caller's.
RankBackendOptions MakeRankBackendOptions(const v1::BeginRank& begin, int threads);

// UNIMPLEMENTED where this build has no such devices, UNAVAILABLE where the host has not; errors of the device.
StatusOr<std::unique_ptr<kernels::Backend>> MakeRankBackend(const RankBackendOptions& options);

// `status`, with the cause kCauseDevice where this process has lost its device.
Status WithDeviceFault(Status status);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_BACKEND_H_
