#include "tests/simulation/mishaps.h"

#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include "base/check.h"
#include "troupe/v1/service.pb.h"

namespace troupe::simulation {
namespace {

// The request of `troupe checkpoints rebuild-catalog` for one job.
v1::RebuildJobRequest RebuildOf(const std::vector<FoundAttempt>& found, const v1::JobSpec& spec) {
  v1::RebuildJobRequest request;
  *request.mutable_job() = spec;
  for (const FoundAttempt& attempt : found) {
    v1::CheckpointRecord& record = *request.add_checkpoints();
    record.set_job(spec.name());
    record.set_attempt(attempt.manifest.attempt());
    record.set_group_epoch(attempt.manifest.group_epoch());
    record.set_step(attempt.manifest.state().step());
    record.set_path(attempt.path);
    record.set_digest(attempt.digest);
    record.set_state(attempt.whole ? v1::CHECKPOINT_STATE_COMMITTED
                                   : v1::CHECKPOINT_STATE_QUARANTINED);
    record.set_pinned(true);
  }
  return request;
}

}  // namespace

void Mishaps::Begin(Duration phase, Duration unit) {
  const auto at = [&](Duration earliest, auto what) {
    world_.system.Schedule(random_.Between(earliest, phase), std::move(what));
  };
  if (mix_.corruption) at(unit, [this] { CorruptACommit(); });
  for (int i = 0; i < mix_.lost_mounts; ++i) at(unit, [this, unit] { LoseAMount(unit); });
  for (int i = 0; i < mix_.hung_writes; ++i) {
    world_.system.Schedule(hangs_.Between(unit, phase), [this, unit] { HangWrites(unit); });
  }
  for (int i = 0; i < mix_.planned_stops; ++i) {
    world_.system.Schedule(stops_.Between(unit, phase), [this] { StopAWorker(); });
  }
  if (mix_.catalog_loss) at(unit * 2, [this, unit] { LoseCatalog(unit); });
  // Bad hosts show once they are used: those that jobs are given first.
  // One host at most of each of the last two kinds: two that read wrongly confirm each other, and
  // where two are awaited nobody is to blame alone.
  std::vector<HostFault> kinds = {HostFault::kCrash, HostFault::kDevice, HostFault::kCannotWrite,
                                  HostFault::kReadsWrongly, HostFault::kNeverReady};
  for (int i = 0; i < mix_.bad_hosts; ++i) {
    const std::string worker = fmt::format("worker-{}", random_.Below(12));
    const HostFault kind = kinds[random_.Below(kinds.size())];
    if (kind == HostFault::kReadsWrongly || kind == HostFault::kNeverReady) std::erase(kinds, kind);
    world_.bad_hosts[worker] = kind;
    faults_.Log(
        fmt::format("{} is bad, kind {}", worker, static_cast<int>(world_.bad_hosts.at(worker))));
  }
}

void Mishaps::Heal() {
  for (const std::string& worker : world_.lost_mounts) {
    world_.storage.SetMount(worker, Mount::kThere);
  }
}

void Mishaps::CorruptACommit() {
  const v1::CheckpointRecord* const commit = catalog_.AnyCommit(random_);
  if (commit == nullptr) return;
  faults_.Log(fmt::format("{} goes bad", commit->path()));
  world_.storage.Corrupt(commit->path());
}

void Mishaps::LoseAMount(Duration unit) {
  const std::string worker = LeasedHost(random_);
  if (worker.empty()) return;
  const Mount mount = random_.Chance(0.3) ? Mount::kFails : Mount::kLocal;
  const Duration length = random_.Between(unit / 10, unit * 4);
  faults_.Log(fmt::format("{} loses its mount for {:.3f} s, {}", worker, ToSeconds(length),
                          mount == Mount::kFails ? "which fails" : "and writes beneath it"));
  world_.lost_mounts.insert(worker);
  world_.storage.SetMount(worker, mount);
  world_.system.Schedule(length,
                         [this, worker] { world_.storage.SetMount(worker, Mount::kThere); });
}

void Mishaps::HangWrites(Duration unit) {
  const std::string worker = LeasedHost(hangs_);
  if (worker.empty() || world_.BlockedFor(worker) > Duration::zero()) return;
  BlockedWrites& blocked = world_.blocked_writes[worker];
  // For ever only where there are spares, and on one host: otherwise no job could end.
  const bool spares = workers_.size() >= 20;
  if (spares && !hangs_for_ever_ && hangs_.Chance(0.3)) {
    hangs_for_ever_ = true;
    blocked = {MonotonicTime::max(), true};
    faults_.Log(fmt::format("the writes of {} hang for ever", worker));
    return;
  }
  const Duration length = hangs_.Between(unit / 4, unit * 16);
  blocked = {world_.system.Now() + length, hangs_.Chance(0.5)};
  faults_.Log(fmt::format("the writes of {} hang for {:.3f} s, {}", worker, ToSeconds(length),
                          blocked.killable ? "and can be killed" : "and cannot be killed"));
}

void Mishaps::StopAWorker() {
  const std::string worker = LeasedHost(stops_);
  if (worker.empty()) return;
  faults_.Log(fmt::format("{} is asked to stop", worker));
  stop_(worker);
}

std::string Mishaps::LeasedHost(SeededRandom& random) const {
  const auto& leases = catalog_.leases();
  if (leases.empty()) return {};
  return LeasedWorker(
      std::next(leases.begin(), static_cast<std::ptrdiff_t>(random.Below(leases.size())))->first);
}

void Mishaps::LoseCatalog(Duration unit) {
  faults_.Log("the coordinator's disk is lost");
  lost_catalog_ = true;
  world_.system.Crash(coordinator_, CrashKind::kHost);
  MemoryStore& disk = world_.system.Disk(coordinator_);
  WriteBatch all;
  const auto visit = [&all](std::string_view key, std::string_view) {
    all.Delete(std::string(key));
    return true;
  };
  TROUPE_CHECK_OK(disk.Scan("", "", visit));
  TROUPE_CHECK_OK(disk.Write(all, Durability::kSynced));
  catalog_.CatalogLost();
  world_.system.Schedule(unit / 2, [this] { world_.system.Start(coordinator_); });
  world_.system.Schedule(unit, [this] { Rebuild(); });
}

void Mishaps::Rebuild() {
  // As docs/checkpoints.md states: a daemon that was away may have seen no higher leader epoch than
  // the coordinator without memory will reach, and would mistake it for its own.
  for (const NodeId worker : workers_) {
    if (!world_.system.IsUp(worker)) continue;
    world_.system.Crash(worker, CrashKind::kProcess);
    world_.system.Schedule(std::chrono::seconds(1),
                           [this, worker] { world_.system.Start(worker); });
  }
  std::vector<PlannedCall> calls;
  for (const auto& [job, found] : world_.storage.Survey()) {
    rebuilt_.insert(job);
    calls.push_back({Duration(0), CallKind::kRebuildJob, job, "",
                     RebuildOf(found, world_.specs.at(job)).SerializeAsString()});
    v1::ResumeJobRequest resume;
    resume.set_name("jobs/" + job);
    calls.push_back(
        {std::chrono::seconds(1), CallKind::kResumeJob, job, "", resume.SerializeAsString()});
  }
  is_rebuilt_ = true;
  further_calls_ = calls.size();
  ask_(std::move(calls));
}

}  // namespace troupe::simulation
