#include "tests/simulation/disk_model.h"

#include <utility>

namespace troupe::simulation {
namespace {

using std::chrono::milliseconds;

// Requests, and the same again when their time has passed.
struct RemoveCheckpoint {
  static constexpr std::string_view kMessageName = "disk.remove_checkpoint";
  v1::DeleteCheckpoint request;
  bool is_due = false;
};
struct RemoveImages {
  static constexpr std::string_view kMessageName = "disk.remove_images";
  v1::DeleteImages request;
};
struct ReadCommit {
  static constexpr std::string_view kMessageName = "disk.read_commit";
  v1::VerifyCheckpoint request;
  bool is_due = false;
};

class DiskFiles final : public SessionFiles {
 public:
  DiskFiles(World& world, Address disk) : world_(world), disk_(disk) {}

  void ReadLogs(v1::ReadLogs, std::set<int>, AnswerCoordinator) override {}
  void ReadTrace(v1::TraceRequest, int, AnswerCoordinator) override {}
  void RemoveLogs(v1::ForgetJob) override {}
  void Remove(v1::DeleteCheckpoint request) override {
    // The coordinator asks again for what the disk has no room for.
    Send(RemoveCheckpoint{std::move(request)}).IgnoreError();
  }
  void RemoveImages(v1::DeleteImages request) override {
    Send(simulation::RemoveImages{std::move(request)}).IgnoreError();
  }
  Status Verify(v1::VerifyCheckpoint request) override {
    return Send(ReadCommit{std::move(request)});
  }

 private:
  template <typename Body>
  Status Send(Body body) {
    return world_.system.Send(disk_, AnyMessage(std::move(body)));
  }

  World& world_;
  const Address disk_;
};

}  // namespace

Status DiskModel::Start(Context& context) {
  events_ = MakeEventSender(world_, context);
  return OkStatus();
}

Status DiskModel::Handle(AnyMessage message, Context& context) {
  if (auto* remove = message.As<RemoveCheckpoint>()) {
    if (std::exchange(remove->is_due, true)) return Remove(remove->request, context);
    context.SetTimer(DrawDuration(context, milliseconds(1), milliseconds(50)), std::move(message));
    return OkStatus();
  }
  if (auto* read = message.As<ReadCommit>()) {
    if (std::exchange(read->is_due, true)) return ReadBack(read->request, context);
    context.SetTimer(DrawDuration(context, milliseconds(10), milliseconds(2000)),
                     std::move(message));
    return OkStatus();
  }
  if (const auto* images = message.As<RemoveImages>()) {
    for (const std::string& path : images->request.paths()) RemoveImage(path);
    return OkStatus();
  }
  if (message.As<OfferAgain>()) return events_->OfferLater(context);
  return Internal("the disk received {}", message.name());
}

void DiskModel::RemoveImage(const std::string& path) {
  for (const auto& [job, needed] : world_.needed_images) {
    world_.truth.Check(!needed.contains(path), kNeededImage,
                       fmt::format("{} is deleted, and {} would continue from it", path, job));
  }
  world_.images.erase(path);
}

Status DiskModel::Remove(const v1::DeleteCheckpoint& request, Context& context) {
  if (const Duration left = world_.BlockedFor(worker_); left > Duration::zero()) {
    if (left != Duration::max())
      context.SetTimer(left + milliseconds(1), AnyMessage(RemoveCheckpoint{request, true}));
    return OkStatus();
  }
  // If the mount is missing nothing is removed, and the coordinator asks again.
  const std::string& path = request.path();
  const std::string folder = path.substr(0, path.rfind('/', path.rfind('/') - 1));
  const Status here = world_.storage.CheckFolderId(worker_, folder, request.folder_id());
  if (!here.ok()) return OkStatus();
  world_.storage.Delete(worker_, path);
  session::CheckpointGone gone;
  gone.deleted.set_job(request.job());
  gone.deleted.set_attempt(request.attempt());
  gone.deleted.set_path(path);
  gone.deleted.set_none_writes(request.none_writes());
  return events_->Report(std::move(gone), context);
}

Status DiskModel::ReadBack(const v1::VerifyCheckpoint& request, Context& context) {
  const bool wrongly = world_.FaultOf(worker_) == HostFault::kReadsWrongly;
  const Status found = world_.random.Chance(world_.faults.unreadable_commit)
                           ? Unavailable("cannot be read")
                       : wrongly ? DataLoss("its host reads other bytes")
                                 : world_.storage.Verify(worker_, request.path(), request.digest());
  return events_->Report(ReadBackAnswer(request, found), context);
}

std::unique_ptr<SessionFiles> MakeDiskFiles(World& world, Address disk) {
  return std::make_unique<DiskFiles>(world, disk);
}

}  // namespace troupe::simulation
