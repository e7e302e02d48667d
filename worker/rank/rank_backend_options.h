// The device of a rank and what its backend needs of the rank.
#ifndef TROUPE_WORKER_RANK_RANK_BACKEND_OPTIONS_H_
#define TROUPE_WORKER_RANK_RANK_BACKEND_OPTIONS_H_

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/status.h"
#include "collective/network.h"
#include "model/program/program.h"
#include "plan/device/device_kind.h"
#include "troupe/v1/plan.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

// The other ranks of a job, as a rank knows them before it is connected to them.
struct RankPeers {
  const v1::Plan* plan = nullptr;  // outlives the backend; null: the backend serves no job
  int rank = 0;                    // this one
  // Builds the program of another rank.
  std::function<StatusOr<model::Program>(int rank)> make_program;
  // Sends this rank's device and returns those of all ranks, by rank, once all have sent theirs.
  // CANCELLED if the rank is stopped meanwhile.
  std::function<StatusOr<std::vector<v1::RankDevice>>(v1::RankDevice)> exchange_devices;
};

struct RankBackendOptions {
  std::string devices = std::string(kDefaultDeviceKind);  // the job's kind of devices
  int device = 0;                                         // index on the worker
  int threads = 1;                                        // threads of the rank
  FileSystem* files = nullptr;
  // Folder for the tuning results of device libraries, which all jobs of a worker share; empty:
  // they are not kept.
  std::string tuning_folder;
  // Folder for programs that a device's compiler made, which all jobs of a worker share; empty:
  // they are not kept.
  std::string executable_folder;
  std::vector<std::string> compiler_options;  // the plan's: NAME=VALUE
  bool reads_gradients = false;               // the job reports norms of gradients by block
  bool evaluates = false;                     // the job has samples for validation
  RankPeers peers;                            // for ranks that share a slice of TPU chips
  CollectiveNetwork* network = nullptr;       // the host's; outlives the backend
  Duration wait_limit{};                      // limit of one wait of the host for its device
  // Limit for making or closing one group of device communicators.
  Duration connect_limit{};
  Duration close_limit{};
  // Ends such a wait if it returns an error, as an abort of `network` does. Called from any thread.
  std::function<Status()> interruption;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_BACKEND_OPTIONS_H_
