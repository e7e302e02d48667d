// A burn-in that the coordinator requests: runs `troupe-worker --burn-in` on all devices of this
// worker in a process of its own, and writes, reads back and removes a file in each folder that is
// to be tested.
#ifndef TROUPE_WORKER_DAEMON_BURN_IN_ACTOR_H_
#define TROUPE_WORKER_DAEMON_BURN_IN_ACTOR_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "actor/actor.h"
#include "base/clock.h"
#include "base/file_system.h"
#include "base/status.h"
#include "troupe/v1/worker.pb.h"
#include "worker/daemon/actor_gate.h"

namespace troupe {

// Tests a folder in which jobs have stored checkpoints: writes a file of 1 MiB durably, reads it
// back, compares and removes it. `identified` is a result of FolderIdPath
// (checkpoint/format/folder.h), without identity if that is unknown; `name` distinguishes the files
// of several workers. UNAVAILABLE if the folder does not have the identity or any identity, because
// it is not mounted; DATA_LOSS if the data differs; other errors are the file system's.
Status TryFolder(FileSystem& files, const std::string& identified, const std::string& name);

struct BurnInOptions {
  std::string executable;     // troupe-worker
  std::string devices;        // "cuda:8"
  std::string name;           // name of the worker
  std::string log_directory;  // where the process may leave files
  // Time for folders and for the start of the process, in addition to a burn-in's own seconds. It
  // is less than what the coordinator allows (coordinator/faults/host_faults.cc), so that the
  // coordinator learns the reason.
  Duration allowance = std::chrono::seconds(100);
  // Time in which a stopped burn-in ends, unless the kernel blocks it.
  Duration stop_limit = std::chrono::seconds(5);
  std::function<Status(const std::string& folder)> try_folder = {};  // empty: TryFolder
};

// The wanted burn-in; absent: none. It replaces the one that was wanted before, which is stopped.
struct WantBurnIn {
  static constexpr std::string_view kMessageName = "burn_in.want";
  std::optional<v1::BurnIn> request;
};

// Makes an actor that handles WantBurnIn and reports BurnInEnded to its owner for each request:
// once the burn-in is done, has failed, is stopped or has not ended within its seconds plus the
// allowance. A burn-in begins only when the one before it has ended.
//
// Each burn-in runs on a thread of its own. If the kernel blocks the thread or its process, both
// are abandoned, so that a hanging device or mount blocks nobody. `gate` leads to the actor's
// system.
std::unique_ptr<Actor> MakeBurnInActor(BurnInOptions options, std::shared_ptr<ActorGate> gate);

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_BURN_IN_ACTOR_H_
