#include "tests/simulation/catalog_observer.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <vector>

#include "base/check.h"
#include "coordinator/history/event_history.h"
#include "coordinator/state/namespaces.h"
#include "coordinator/test_job_index.h"
#include "plan/job/job_name.h"

namespace troupe::simulation {
namespace {

constexpr size_t kMaxSessions = 4096;
// Number of observations between two checks of the index of jobs.
constexpr uint64_t kIndexInterval = 8;

template <typename Message>
Message Parse(std::string_view value) {
  Message message;
  TROUPE_CHECK(message.ParseFromArray(value.data(), static_cast<int>(value.size())));
  return message;
}

// "history/job-1/0000…" or "plan/job-1" → "job-1".
std::string JobOfRow(std::string_view key) {
  const std::string_view rest = key.substr(key.find('/') + 1);
  return std::string(rest.substr(0, rest.find('/')));
}

bool Ended(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

}  // namespace

void CatalogObserver::OnWriter() {
  const auto [holder, first] = lives_.emplace(writer_.leader_epoch, writer_.life);
  world_.truth.Check(first || holder->second == writer_.life, 1,
                     fmt::format("coordinators {} and {} both write in leader epoch {}",
                                 holder->second, writer_.life, writer_.leader_epoch));
  world_.truth.Check(writer_.leader_epoch >= leader_epoch_, 1,
                     fmt::format("coordinator {} writes in leader epoch {} when {} serves",
                                 writer_.life, writer_.leader_epoch, leader_epoch_));
}

void CatalogObserver::OnWrite(const WriteBatch& batch) {
  // The epoch itself is written before the coordinator serves in it.
  const bool of_the_epoch_alone =
      std::all_of(batch.changes().begin(), batch.changes().end(),
                  [](const WriteBatch::Change& change) { return change.key == "leader_epoch"; });
  if (!of_the_epoch_alone) OnWriter();
  const std::set<std::string> going = JobsThatGo(batch);
  for (const WriteBatch::Change& change : batch.changes()) {
    const std::string& key = change.key;
    if (key == "leader_epoch" || key == "epoch_floor") continue;  // judged when it serves
    if (change.value) {
      keys_.insert(key);
    } else {
      keys_.erase(key);
    }
    const std::string_view view = key;
    if (view.starts_with("job/") && change.value) {
      OnJob(key.substr(4), *change.value);
    } else if (view.starts_with("job/")) {
      OnJobDeleted(key.substr(4));
    } else if (view.starts_with("spec/") && change.value) {
      OnSpec(key.substr(5), *change.value);
    } else if (view.starts_with("images/")) {
      OnImages(key.substr(7), change.value);
    } else if (view.starts_with("group/") && change.value) {
      OnGroup(key.substr(6), *change.value);
    } else if (view.starts_with("history/") && change.value) {
      OnHistory(key, *change.value);
    } else if (view.starts_with("checkpoint/")) {
      OnCheckpoint(key, change.value, going);
    } else if (view.starts_with("lease/")) {
      OnLease(key, change.value);
    } else if (view.starts_with("event/")) {
      OnEvent(key, change.value);
    } else if (view.starts_with("request/")) {
      OnRequest(key, change.value);
    }
  }
  CheckNothingIsLeft(going);
}

void CatalogObserver::OnRequest(const std::string& key, const std::optional<std::string>& value) {
  if (!value) {
    requests_.erase(key.substr(8));
    return;
  }
  const auto [found, added] = requests_.emplace(key.substr(8), *value);
  world_.truth.Check(added || found->second == *value, 13,
                     fmt::format("{} made two jobs: {} and {}", key, found->second, *value));
}

void CatalogObserver::OnEvent(const std::string& key, const std::optional<std::string>& value) {
  if (!value) {
    const auto found = events_.find(key);
    if (found == events_.end()) return;
    --events_of_kind_[found->second];
    events_.erase(found);
    return;
  }
  const std::string kind =
      fmt::format("{} of {}", Parse<v1::JobEvent>(*value).event(), JobOfRow(key));
  if (!events_.emplace(key, kind).second) return;
  const int count = ++events_of_kind_[kind];
  world_.truth.Check(count <= kFirstEventsKept + kNewestEventsKept, 15,
                     fmt::format("{} events are kept: {}", count, kind));
}

std::set<std::string> CatalogObserver::JobsThatGo(const WriteBatch& batch) const {
  std::set<std::string> going;
  for (const WriteBatch::Change& change : batch.changes()) {
    if (!change.key.starts_with("job/")) continue;
    const std::string id = change.key.substr(4);
    const bool begins =
        change.value && HasEnded(id) && Parse<v1::JobRecord>(*change.value).deleting();
    if (!change.value || begins) going.insert(id);
  }
  return going;
}

void CatalogObserver::OnJobDeleted(const std::string& id) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return;
  world_.truth.Check(
      Ended(job->second.state()), kDeletion,
      fmt::format("{} is {} and is deleted", id, v1::JobState_Name(job->second.state())));
  const auto asked = asked_deletions_.find(id);
  world_.truth.Check(asked != asked_deletions_.end() || ended_may_go_, kDeletion,
                     id + " is deleted, which nobody asked for");
  for (const auto& [key, lease] : leases_) {
    world_.truth.Check(lease.job() != id, kDeletion,
                       fmt::format("{} is deleted while it holds {}", id, key));
  }
  const bool files_too = asked != asked_deletions_.end() && asked->second && !ended_may_go_;
  world_.truth.Check(!files_too || !world_.storage.HasAttempts("/shared/" + id), kDeletion,
                     id + " is deleted with its checkpoints, and the folder holds some");
  jobs_.erase(job);
  specs_.erase(id);
  submitted_.erase(id);
  groups_.erase(id);
  grown_.erase(id);
  highest_rows_.erase(id);
  resumes_.erase(id);
  acknowledged_cancels_.erase(id);
  std::erase_if(steps_, [&](const auto& step) { return JobOfRow(step.first) == id; });
  std::erase_if(acknowledged_submits_, [&](const auto& submit) { return submit.second == id; });
  deleted_.insert(id);
}

void CatalogObserver::CheckNothingIsLeft(const std::set<std::string>& going) {
  for (const std::string& id : going) {
    if (!IsDeleted(id)) continue;
    for (const std::string& key : keys_) {
      const bool of_a_job =
          !key.starts_with("lease/") && !key.starts_with("blame/") && !key.starts_with("request");
      world_.truth.Check(!of_a_job || JobOfRow(key) != id, kDeletion,
                         fmt::format("{} is deleted, and {} is left", id, key));
    }
    for (const auto& [request, job] : requests_) {
      world_.truth.Check(job != id, kDeletion,
                         fmt::format("{} is deleted, and the request {} is left", id, request));
    }
  }
}

void CatalogObserver::OnJob(const std::string& id, std::string_view value) {
  const auto record = Parse<v1::JobRecord>(value);
  const auto found = jobs_.find(id);
  if (found != jobs_.end()) {
    const v1::JobRecord& before = found->second;
    world_.truth.Check(record.group_epoch() >= before.group_epoch(), 2,
                       fmt::format("{}: group epoch falls from {} to {}", id, before.group_epoch(),
                                   record.group_epoch()));
    world_.truth.Check(record.last_attempt() >= before.last_attempt(), 4,
                       fmt::format("{}: last attempt falls from {} to {}", id,
                                   before.last_attempt(), record.last_attempt()));
    // An end and its cause are final unless somebody resumes the job.
    if (Ended(before.state()) && !Ended(record.state()) && resumes_.contains(id)) {
      acknowledged_cancels_.erase(id);
      ++resumed_;
    } else if (Ended(before.state())) {
      world_.truth.Check(record.state() == before.state(), 18,
                         fmt::format("{}: {} becomes {}", id, v1::JobState_Name(before.state()),
                                     v1::JobState_Name(record.state())));
      world_.truth.Check(
          record.failure().SerializeAsString() == before.failure().SerializeAsString(), 18,
          fmt::format("{}: the cause {} becomes {}", id, before.failure().cause(),
                      record.failure().cause()));
    }
  }
  world_.truth.Check((record.state() == v1::JOB_STATE_FAILED) == !record.failure().cause().empty(),
                     18,
                     fmt::format("{} is {} with cause \"{}\"", id,
                                 v1::JobState_Name(record.state()), record.failure().cause()));
  jobs_[id] = record;
}

void CatalogObserver::OnSpec(const std::string& id, std::string_view value) {
  const auto spec = Parse<v1::JobSpec>(value);
  const auto before = specs_.find(id);
  const bool kept =
      before == specs_.end() || before->second.SerializeAsString() == spec.SerializeAsString();
  const auto job = jobs_.find(id);
  const bool resumed = resumes_.contains(id) && job != jobs_.end() && Ended(job->second.state());
  world_.truth.Check(kept || resumed, kSubmittedLayout,
                     fmt::format("{} was submitted with {} and is recorded with {}", id,
                                 kept ? "" : before->second.parallelism().ShortDebugString(),
                                 spec.parallelism().ShortDebugString()));
  specs_[id] = spec;
  if (!submitted_.contains(id) || resumed) submitted_[id] = spec;
}

void CatalogObserver::OnImages(const std::string& id, const std::optional<std::string>& value) {
  std::set<std::string>& needed = world_.needed_images[id];
  needed.clear();
  if (!value) return;
  ++images_;
  const auto images = Parse<v1::JobImages>(*value);
  for (const v1::RankImage& image : images.images()) needed.insert(image.path());
}

void CatalogObserver::OnGroup(const std::string& id, std::string_view value) {
  v1::GroupRecord& group = groups_[id];
  const uint64_t before = group.group_epoch();
  group = Parse<v1::GroupRecord>(value);
  const auto job = jobs_.find(id);
  const bool stopped_to_go_on = job != jobs_.end() &&
                                (job->second.grows() || job->second.leaves_workers()) &&
                                job->second.state() == v1::JOB_STATE_RECOVERING;
  if (group.group_epoch() != before && stopped_to_go_on) grown_[id] = group.group_epoch();
}

const v1::GroupRecord* CatalogObserver::Group(const std::string& job) const {
  const auto found = groups_.find(job);
  return found == groups_.end() ? nullptr : &found->second;
}

bool CatalogObserver::HasEnded(const std::string& job) const {
  const auto found = jobs_.find(job);
  return found != jobs_.end() && Ended(found->second.state());
}

bool CatalogObserver::IsDeleted(const std::string& job) const {
  return deleted_.contains(job) && !jobs_.contains(job);
}

bool CatalogObserver::HasPinned(const std::string& job) const {
  return std::any_of(checkpoints_.begin(), checkpoints_.end(), [&](const auto& entry) {
    return entry.second.job() == job && entry.second.pinned();
  });
}

void CatalogObserver::CatalogLost() {
  for (const auto& [id, job] : jobs_) lost_jobs_.insert(id);
  leader_epoch_ = 0;
  lives_.clear();
  jobs_.clear();
  specs_.clear();
  submitted_.clear();
  groups_.clear();
  grown_.clear();
  world_.needed_images.clear();
  highest_rows_.clear();
  keys_.clear();
  requests_.clear();
  events_.clear();
  events_of_kind_.clear();
  checkpoints_.clear();
  leases_.clear();
  steps_.clear();
  acknowledged_submits_.clear();
  acknowledged_cancels_.clear();
}

void CatalogObserver::OnHistory(std::string_view key, std::string_view value) {
  const auto row = Parse<v1::StepEvent>(value);
  const std::string_view rest = key.substr(8);
  const std::string id(rest.substr(0, rest.rfind('/')));
  const auto spec = specs_.find(id);
  TROUPE_CHECK(spec != specs_.end());
  ++history_rows_;
  world_.truth.Check(
      row.loss() == Loss(spec->second.training().seed(), row.step()), 7,
      fmt::format("{}: the loss of another step is recorded for step {}", id, row.step()));
  // Rank 0 reports its group epoch as the gradient norm.
  world_.truth.Check(row.grad_norm() == static_cast<double>(row.group_epoch()), 3,
                     fmt::format("{}: step {} of group epoch {} is recorded as of epoch {}", id,
                                 row.step(), row.grad_norm(), row.group_epoch()));
  const auto job = jobs_.find(id);
  world_.truth.Check(
      job != jobs_.end() && row.group_epoch() == job->second.group_epoch(), 3,
      fmt::format("{}: a report of group epoch {} is accepted in another", id, row.group_epoch()));
  CheckRepetition(id, row);
  const bool first = steps_.emplace(key, row.group_epoch()).second;
  world_.truth.Check(first, 4,
                     fmt::format("{}: step {} of group epoch {} is recorded twice", id, row.step(),
                                 row.group_epoch()));
}

void CatalogObserver::CheckRepetition(const std::string& id, const v1::StepEvent& row) {
  for (const auto& [key, commit] : checkpoints_) {
    const bool before = commit.job() == id && commit.group_epoch() < row.group_epoch() &&
                        commit.state() == v1::CHECKPOINT_STATE_COMMITTED;
    world_.truth.Check(!before || row.step() > commit.step(), kGrowsWithoutLoss,
                       fmt::format("{}: group epoch {} repeats step {}, and {} is committed", id,
                                   row.group_epoch(), row.step(), key));
  }
  std::map<uint64_t, int64_t>& highest = highest_rows_[id];
  // Compares only with the previous group, because steps of earlier groups may have been lost with
  // them.
  const auto grown = grown_.find(id);
  const bool grew = grown != grown_.end() && grown->second == row.group_epoch();
  const auto former = highest.find(row.group_epoch() - 1);
  world_.truth.Check(!grew || former == highest.end() || row.step() > former->second,
                     kGrowsWithoutLoss,
                     fmt::format("{} grew or moved in group epoch {} and repeats step {}", id,
                                 row.group_epoch(), row.step()));
  int64_t& last = highest[row.group_epoch()];
  last = std::max(last, row.step());
}

bool CatalogObserver::IsWhole(const v1::CheckpointRecord& commit) const {
  return world_.storage.WasFoundWhole(commit.path()) &&
         (world_.storage.IsCorrupt(commit.path()) ||
          world_.storage.ReadOfTruth(commit.path(), commit.digest()).ok() ||
          !commit.path().starts_with("/shared/"));
}

void CatalogObserver::OnCheckpoint(const std::string& key, const std::optional<std::string>& value,
                                   const std::set<std::string>& going) {
  if (!value) {
    const auto found = checkpoints_.find(key);
    if (found == checkpoints_.end()) return;
    if (found->second.state() == v1::CHECKPOINT_STATE_COMMITTED) {
      world_.truth.Check(going.contains(found->second.job()), 12,
                         fmt::format("{} is committed and its record deleted", key));
      kept_commits_.push_back(found->second);
    }
    checkpoints_.erase(found);
    return;
  }
  const auto record = Parse<v1::CheckpointRecord>(*value);
  const auto found = checkpoints_.find(key);
  const v1::CheckpointState before =
      found == checkpoints_.end() ? v1::CHECKPOINT_STATE_UNSPECIFIED : found->second.state();
  // The job is known again from its folder's contents, after the catalog was lost.
  const bool rebuilt =
      found == checkpoints_.end() && lost_jobs_.contains(record.job()) && record.pinned();
  if (rebuilt && record.state() == v1::CHECKPOINT_STATE_COMMITTED) {
    CheckCommit(key, record);
  } else if (record.state() == v1::CHECKPOINT_STATE_COMMITTED &&
             before != v1::CHECKPOINT_STATE_COMMITTED) {
    world_.truth.Check(
        before == v1::CHECKPOINT_STATE_WRITING, 4,
        fmt::format("{} is committed from state {}", key, v1::CheckpointState_Name(before)));
    const auto job = jobs_.find(record.job());
    world_.truth.Check(job != jobs_.end() && job->second.group_epoch() == record.group_epoch(), 3,
                       fmt::format("{} commits an attempt of group epoch {} in another", key,
                                   record.group_epoch()));
    ++commits_;
    CheckCommit(key, record);
  }
  if (record.state() == v1::CHECKPOINT_STATE_QUARANTINED && before != record.state() && !rebuilt) {
    const bool mounted = world_.lost_mounts.empty();
    // A host that reads wrongly has the last word where it is the only one left to ask.
    const bool alone =
        record.reason().find("read it twice") != std::string::npos &&
        std::any_of(world_.bad_hosts.begin(), world_.bad_hosts.end(),
                    [](const auto& host) { return host.second == HostFault::kReadsWrongly; });
    world_.truth.Check(alone || world_.storage.IsCorrupt(record.path()), mounted ? 11 : kLostMount,
                       fmt::format("{} is quarantined and is whole: {}", key, record.reason()));
  }
  if (record.verified()) {
    world_.truth.Check(world_.storage.WasFoundWhole(record.path()), 12,
                       fmt::format("{} is recorded as verified and was never found whole", key));
  }
  if (record.state() == v1::CHECKPOINT_STATE_DELETING && before == v1::CHECKPOINT_STATE_COMMITTED) {
    if (going.contains(record.job())) {
      const auto asked = asked_deletions_.find(record.job());
      const bool may_go = asked != asked_deletions_.end() && asked->second;
      world_.truth.Check(may_go && !record.pinned(), kDeletion,
                         fmt::format("{} is deleted with its job, and is to stay", key));
    } else {
      OnDeletion(key, record, found->second.pinned());
    }
  }
  checkpoints_[key] = record;
}

void CatalogObserver::CheckCommit(const std::string& key, const v1::CheckpointRecord& record) {
  // On the shared folder a later placement must read what every host can read; with a private
  // folder, what all hosts of the group can read.
  const v1::JobSpec& spec = specs_.at(record.job());
  StatusOr<Restored> restored = world_.storage.ReadOfTruth(record.path(), record.digest());
  const bool lone =
      !record.folder_id().empty() && !world_.storage.IsOfSharedFolder(record.folder_id());
  const bool shared = record.path().starts_with("/shared/") && !lone;
  const v1::GroupRecord* const group = shared ? nullptr : Group(record.job());
  for (int i = 0; group != nullptr && i < group->ranks_size(); ++i) {
    const v1::RankPlacement& rank = group->ranks(i);
    restored = world_.storage.Read(rank.worker(), record.path(), record.digest());
    if (!restored.ok()) break;
  }
  if (!restored.ok()) {
    const bool mounted = shared && world_.lost_mounts.empty();
    world_.truth.Violate(mounted ? 10 : kHalfCommit, "{} is committed, but: {}", key,
                         ToString(restored.status()));
    return;
  }
  world_.truth.Check(
      restored->step == record.step() &&
          restored->state == world_.truth.State(spec.training().seed(), record.step()),
      10,
      fmt::format("{} of step {} holds another state (of step {})", key, record.step(),
                  restored->step));
}

void CatalogObserver::OnDeletion(const std::string& key, const v1::CheckpointRecord& record,
                                 bool was_pinned) {
  int newer = 0;
  for (const auto& [other, commit] : checkpoints_) {
    if (commit.job() != record.job() ||
        std::pair(commit.step(), commit.attempt()) <= std::pair(record.step(), record.attempt())) {
      continue;
    }
    newer +=
        commit.state() == v1::CHECKPOINT_STATE_COMMITTED && commit.verified() && IsWhole(commit);
  }
  ++deletions_;
  world_.truth.Check(newer >= 2 && !record.pinned() && !was_pinned, 12,
                     fmt::format("{} of step {} is deleted with {} newer commits that are whole",
                                 key, record.step(), newer));
}

void CatalogObserver::OnLease(const std::string& key, const std::optional<std::string>& value) {
  if (!value) {
    leases_.erase(key);
    return;
  }
  const auto lease = Parse<v1::LeaseRecord>(*value);
  const auto [found, added] = leases_.emplace(key, lease);
  world_.truth.Check(
      added || found->second.SerializeAsString() == *value, 14,
      fmt::format("{} is leased to {} epoch {} while {} epoch {} holds it", key, lease.job(),
                  lease.group_epoch(), found->second.job(), found->second.group_epoch()));
  found->second = lease;
}

uint64_t CatalogObserver::CoordinatorStarts(uint64_t leader_epoch, const CatalogImage& image) {
  world_.truth.Check(leader_epoch > leader_epoch_, 2,
                     fmt::format("leader epoch {} follows {}", leader_epoch, leader_epoch_));
  leader_epoch_ = std::max(leader_epoch, leader_epoch_);
  for (const auto& [request, job] : acknowledged_submits_) {
    const auto kept = image.requests.find(request);
    world_.truth.Check(
        image.jobs.contains(job) && kept != image.requests.end() && kept->second == job, 13,
        fmt::format("{} was acknowledged for {} and is forgotten", job, request));
  }
  for (const std::string& job : acknowledged_cancels_) {
    const auto kept = image.jobs.find(job);
    world_.truth.Check(kept != image.jobs.end() && Ended(kept->second.record.state()), 13,
                       fmt::format("the cancel of {} was acknowledged and is forgotten", job));
  }
  for (const std::string& job : deleted_) {
    world_.truth.Check(!IsDeleted(job) || !image.jobs.contains(job), 13,
                       fmt::format("{} was deleted and is there again", job));
  }
  return ++last_life_;
}

void CatalogObserver::Observe(const CoordinatorState& state) {
  world_.truth.Check(state.fleet.sessions.size() <= kMaxSessions, 15,
                     fmt::format("{} sessions", state.fleet.sessions.size()));
  world_.truth.Check(state.fleet.sessions.size() <= state.fleet.workers.size(), 15,
                     fmt::format("{} sessions of {} workers", state.fleet.sessions.size(),
                                 state.fleet.workers.size()));
  if (++observations_ % kIndexInterval == 0) {
    const std::string fault = FaultOfJobIndex(state);
    world_.truth.Check(fault.empty(), kJobIndex, fault);
  }
  if (state.options.namespaces != nullptr) CheckQuotas(state);
}

void CatalogObserver::CheckQuotas(const CoordinatorState& state) {
  std::map<std::string, int64_t, std::less<>> used;  // by namespace
  for (const auto& [key, lease] : state.fleet.leases) {
    const auto job = state.jobs.find(lease.job());
    const bool runs = job != state.jobs.end() && job->second.group &&
                      job->second.group->epoch == lease.group_epoch();
    if (runs) ++used[std::string(NamespaceOf(lease.job()))];
  }
  for (const auto& [name, devices] : used) {
    const v1::Namespace* const space = state.options.namespaces->Find(name);
    world_.truth.Check(space != nullptr && devices <= space->quota().devices(), kDeviceQuota,
                       fmt::format("the jobs of {} use {} devices", name, devices));
  }
  for (const QueueKey& key : state.index.queue()) {
    if (state.jobs.at(key.id).waiting_for.find("quota.devices") != std::string::npos)
      quota_waiters_.insert(key.id);
  }
}

void CatalogObserver::SubmitAcknowledged(const std::string& request_id, const std::string& job) {
  if (IsDeleted(job)) return;  // a late answer
  const auto [found, added] = acknowledged_submits_.emplace(request_id, job);
  world_.truth.Check(added || found->second == job, 13,
                     fmt::format("{} was answered with {} and {}", request_id, found->second, job));
}

void CatalogObserver::CancelAcknowledged(const std::string& job) {
  // A late answer may come after somebody resumed the job.
  if (HasEnded(job)) acknowledged_cancels_.insert(job);
}

void CatalogObserver::DeletionAcknowledged(const std::string& job) {
  world_.truth.Check(IsDeleted(job), 13,
                     fmt::format("the deletion of {} was acknowledged, and it is there", job));
}

const v1::CheckpointRecord* CatalogObserver::Head(const std::string& job) const {
  const v1::CheckpointRecord* head = nullptr;
  for (const auto& [key, record] : checkpoints_) {
    if (record.job() == job && record.state() == v1::CHECKPOINT_STATE_COMMITTED &&
        (head == nullptr || record.step() > head->step())) {
      head = &record;
    }
  }
  return head;
}

bool CatalogObserver::HasQuarantined(const std::string& job, int64_t step) const {
  return std::any_of(checkpoints_.begin(), checkpoints_.end(), [&](const auto& entry) {
    return entry.second.job() == job && entry.second.step() == step &&
           entry.second.state() == v1::CHECKPOINT_STATE_QUARANTINED;
  });
}

const v1::CheckpointRecord* CatalogObserver::AnyCommit(SeededRandom& random) const {
  std::vector<const v1::CheckpointRecord*> commits;
  for (const auto& [key, record] : checkpoints_) {
    if (record.state() == v1::CHECKPOINT_STATE_COMMITTED) commits.push_back(&record);
  }
  return commits.empty() ? nullptr : commits[random.Below(commits.size())];
}

}  // namespace troupe::simulation
