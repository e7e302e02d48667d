#include "tests/simulation/worker_process.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tests/simulation/burn_in_model.h"
#include "tests/simulation/disk_model.h"
#include "tests/simulation/link_model.h"
#include "tests/simulation/rank_model.h"

namespace troupe::simulation {

Status WorkerProcess::Start(Context& context) {
  TROUPE_ASSIGN_OR_RETURN(const uint64_t incarnation, NextIncarnation(context));
  TROUPE_ASSIGN_OR_RETURN(const Address disk,
                          context.Spawn("disk", std::make_unique<DiskModel>(world_, name_)));
  SessionActorOptions options{
      .send = [&system = world_.system](
                  Address to, AnyMessage message) { return system.Send(to, std::move(message)); },
      .open_files = [this, disk](Address) { return MakeDiskFiles(world_, disk); },
      .link = std::make_unique<LinkModel>(world_, node_, coordinator_),
      .burn_in = std::make_unique<BurnInModel>(world_, name_),
      .start_rank = [this](int device) -> StatusOr<StartedRank> {
        return StartedRank{std::make_unique<RankModel>(world_, node_, name_, device), 0};
      },
      .memory_bytes = [](pid_t) -> int64_t { return 1 << 20; },
      .totals = &totals_,
      .works = &works_,
      .exit = [](int) {},
  };
  options.config.identity = Identity(incarnation);
  session_ = MakeSessionActor(std::move(options));
  return session_->Start(context);
}

Status WorkerProcess::Handle(AnyMessage message, Context& context) {
  TROUPE_RETURN_IF_ERROR(session_->Handle(std::move(message), context));
  const size_t unsent = session_->state().unsent.size();
  world_.truth.Check(unsent <= 1024, 15, fmt::format("{} keeps {} ends of ranks", name_, unsent));
  return OkStatus();
}

Status WorkerProcess::HandleEnd(Address child, const Status& cause, Context& context) {
  return session_->HandleEnd(child, cause, context);
}

v1::Hello WorkerProcess::Identity(uint64_t incarnation) const {
  v1::Hello identity;
  identity.set_protocol_version(session::kProtocolVersion);
  identity.set_name(name_);
  identity.set_incarnation(incarnation);
  for (int i = 0; i < devices_; ++i) {
    v1::Device& device = *identity.add_devices();
    device.set_index(i);
    device.mutable_kind()->set_kind("cpu");
    device.mutable_kind()->set_model("simulated");
    device.mutable_kind()->set_kernel_level("portable");
    device.mutable_kind()->set_versions("1");
    device.set_memory_bytes(int64_t{1} << 34);
    device.set_cores(1);
  }
  identity.set_host(name_);
  identity.set_pid(1);
  for (const auto& [path, image] : world_.images) {
    if (path.starts_with(name_ + ":")) *identity.add_images() = image.held;
  }
  return identity;
}

// As worker/daemon/incarnation.h: the clock, or the last life's number plus one if the clock went
// back.
StatusOr<uint64_t> WorkerProcess::NextIncarnation(Context& context) {
  constexpr std::string_view kKey = "incarnation";
  auto next = static_cast<uint64_t>(context.WallNanoseconds());
  const StatusOr<std::string> last = store_.Get(kKey);
  if (last.ok()) {
    const uint64_t least = std::strtoull(last->c_str(), nullptr, 10) + 1;
    world_.clocks_set_back += next < least;
    if (!world_.bugs.number_lives_by_clock) next = std::max(next, least);
  }
  WriteBatch batch;
  batch.Put(std::string(kKey), fmt::format("{}", next));
  TROUPE_RETURN_IF_ERROR(store_.Write(batch, Durability::kSynced));
  return next;
}

}  // namespace troupe::simulation
