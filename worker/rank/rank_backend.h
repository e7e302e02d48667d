// The device of a rank and the backend that runs programs on it, as the job's `devices` says.
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
  std::string devices = "cpu";  // the job's: "cpu" or "cuda"
  int device = 0;               // index on the worker
  int threads = 1;              // threads of the rank
  FileSystem* files = nullptr;
  // Folder for the tuning results of device libraries, kept between jobs; empty: not kept.
  std::string folder;
  CollectiveNetwork* network = nullptr;  // the host's; outlives the backend
  Duration wait_limit{};                 // limit of one wait of the host for its device
  // Limit for making or closing one group of device communicators.
  Duration connect_limit{};
  Duration close_limit{};
  // Ends such a wait if it returns an error, as an abort of `network` does. Called from any thread.
  std::function<Status()> interruption;
};

// Takes the fields that `begin` has; the caller sets files, network and interruption.
RankBackendOptions MakeRankBackendOptions(const v1::BeginRank& begin, int threads);

// Returns UNIMPLEMENTED if this build does not support such devices, UNAVAILABLE if the host has
// none; errors of the device.
StatusOr<std::unique_ptr<kernels::Backend>> MakeRankBackend(const RankBackendOptions& options);

// Returns `status`, with the cause kCauseDevice if this process has lost its device.
Status WithDeviceFault(Status status);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_BACKEND_H_
