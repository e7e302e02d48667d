// A model of the daemon's work on files (worker/daemon/file_tasks.h) on the simulated storage. Logs
// and traces are not modelled: requests for them are not answered.
#ifndef TROUPE_TESTS_SIMULATION_DISK_MODEL_H_
#define TROUPE_TESTS_SIMULATION_DISK_MODEL_H_

#include <memory>
#include <string>

#include "actor/actor.h"
#include "tests/simulation/world.h"
#include "troupe/v1/worker.pb.h"
#include "worker/daemon/event_sender.h"
#include "worker/daemon/session_files.h"

namespace troupe::simulation {

// Does the work as a part of the daemon: a crash of the node ends what is in progress.
class DiskModel final : public Actor {
 public:
  DiskModel(World& world, std::string worker) : world_(world), worker_(std::move(worker)) {}

  Status Start(Context& context) override;
  Status Handle(AnyMessage message, Context& context) override;

 private:
  Status Remove(const v1::DeleteCheckpoint& request, Context& context);
  void RemoveImage(const std::string& path);
  Status ReadBack(const v1::VerifyCheckpoint& request, Context& context);

  World& world_;
  const std::string worker_;
  std::unique_ptr<EventSender> events_;
};

// Passes the session's requests to the DiskModel at `disk`.
std::unique_ptr<SessionFiles> MakeDiskFiles(World& world, Address disk);

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_DISK_MODEL_H_
