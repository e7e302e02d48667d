#include "coordinator/test_cluster.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "base/check.h"
#include "coordinator/test_job_index.h"

namespace troupe {
namespace {

StatusOr<v1::JobSpec> Complete(const v1::JobSpec& spec) {
  if (spec.name().empty()) return InvalidArgument("name is empty");
  return spec;
}

StatusOr<v1::Plan> MakePlan(const v1::JobSpec& spec, const v1::DeviceProfile*) {
  v1::Plan plan;
  plan.mutable_samples()->set_version(1);
  plan.mutable_samples()->add_channels()->set_name("tokens");
  const int ranks = static_cast<int>(spec.parallelism().data_parallel_replicate_degree());
  plan.mutable_mesh()->set_data_replicate(ranks);
  for (int rank = 0; rank < ranks; ++rank) plan.add_ranks()->set_rank(rank);
  plan.set_digest(fmt::format("plan of {} ranks", ranks));
  return plan;
}

StatusOr<v1::Plan> Place(const v1::JobSpec& spec, const v1::Plan& plan,
                         const ClusterView& cluster) {
  v1::Plan placed = plan;
  std::vector<const ClusterDevice*> fitting;
  for (const ClusterDevice& device : cluster.free_devices) {
    if (plan.has_device() && device.device.kind().model() != plan.device().model()) continue;
    fitting.push_back(&device);
  }
  if (fitting.size() < static_cast<size_t>(plan.ranks_size())) {
    return FailedPrecondition("{} ranks, but {} suitable devices", plan.ranks_size(),
                              fitting.size());
  }
  for (int rank = 0; rank < plan.ranks_size(); ++rank) {
    placed.mutable_ranks(rank)->set_worker(fitting[static_cast<size_t>(rank)]->worker);
    placed.mutable_ranks(rank)->set_device(fitting[static_cast<size_t>(rank)]->device.index());
  }
  *placed.mutable_device() = fitting[0]->device.kind();
  return placed;
}

std::optional<v1::JobSpec> SmallerLayout(const v1::JobSpec& spec, int devices) {
  const int64_t degree =
      std::min<int64_t>(spec.parallelism().data_parallel_replicate_degree() - 1, devices);
  if (degree < 1) return std::nullopt;
  v1::JobSpec smaller = spec;
  smaller.mutable_parallelism()->set_data_parallel_replicate_degree(degree);
  return smaller;
}

}  // namespace

Planner MakeTestPlanner() { return {Complete, MakePlan, Place, SmallerLayout}; }

v1::JobSpec TestSpec(const std::string& name, int ranks, int64_t steps) {
  v1::JobSpec spec;
  spec.set_name(name);
  spec.mutable_parallelism()->set_data_parallel_replicate_degree(ranks);
  spec.mutable_training()->set_steps(steps);
  spec.mutable_checkpoint()->set_folder("/ck");
  spec.mutable_checkpoint()->set_async_mode("disabled");
  spec.mutable_fault_tolerance()->set_max_restarts(5);
  spec.mutable_fault_tolerance()->set_hang_seconds(60);
  return spec;
}

TestCluster::TestCluster(double detection_seconds) {
  options_.limits = MakeTimeLimits(detection_seconds);
  options_.planner = MakeTestPlanner();
  Recover();
}

void TestCluster::Recover() {
  const StatusOr<uint64_t> leader_epoch = AdvanceLeaderEpoch(&store_);
  TROUPE_CHECK_OK(leader_epoch.status());
  const StatusOr<CatalogImage> image = ReadCatalog(store_);
  TROUPE_CHECK_OK(image.status());
  state_ = troupe::Recover(options_, *image, *leader_epoch, now_);
  EXPECT_EQ(FaultOfJobIndex(state_), "");
}

void TestCluster::Restart() {
  store_.Crash(1);
  for (auto& [name, worker] : workers_) {
    worker.session = 0;
    worker.inbox.clear();
  }
  Recover();
}

void TestCluster::Perform(const Effects& effects) {
  for (const ToWorker& message : effects.messages) {
    for (auto& [name, worker] : workers_) {
      if (worker.session == message.session) worker.inbox.push_back(message.message);
    }
  }
  replies.insert(replies.end(), effects.replies.begin(), effects.replies.end());
  updates.insert(updates.end(), effects.updates.begin(), effects.updates.end());
}

Effects TestCluster::Do(decltype(Event::what) what) {
  Effects effects = Step(state_, Event{now_, wall_ns, std::move(what)});
  EXPECT_EQ(FaultOfJobIndex(state_), "");
  TROUPE_CHECK_OK(WriteCatalog(effects.writes, &store_));
  Perform(effects);
  return effects;
}

void TestCluster::DoAndDie(decltype(Event::what) what) {
  const Effects effects = Step(state_, Event{now_, wall_ns, std::move(what)});
  TROUPE_CHECK_OK(WriteCatalog(effects.writes, &store_));
  Restart();
}

void TestCluster::Pass(Duration duration) {
  const MonotonicTime end = now_ + duration;
  for (int ticks = 0; ticks < 100000; ++ticks) {
    const std::optional<MonotonicTime> due = NextDeadline(state_);
    if (!due || *due > end) break;
    now_ = std::max(now_, *due);
    Do(Tick{});
  }
  now_ = end;
}

void TestCluster::StandStill(Duration duration) {
  now_ += duration;
  Do(Tick{});
}

TestWorker& TestCluster::Connect(const std::string& name, int devices) {
  TestWorker& worker = workers_[name];
  worker.name = name;
  worker.incarnation += 1;
  worker.devices = devices;
  worker.held.clear();
  worker.draining.reset();
  Reconnect(name);
  return worker;
}

void TestCluster::Reconnect(const std::string& name) {
  TestWorker& worker = workers_.at(name);
  worker.session = ++last_session_;
  v1::WorkerMessage message;
  v1::Hello* const hello = message.mutable_hello();
  hello->set_protocol_version(2);
  hello->set_name(name);
  hello->set_host("host-of-" + name);
  hello->set_incarnation(worker.incarnation);
  for (int index = 0; index < worker.devices; ++index) {
    v1::Device* const device = hello->add_devices();
    device->set_index(index);
    device->mutable_kind()->set_kind("cpu");
    device->mutable_kind()->set_model("model-a");
    device->set_peak_flops_float32(1e9);
  }
  for (const v1::HeldGroup& held : worker.held) *hello->add_held() = held;
  for (const v1::HeldImage& image : worker.images) *hello->add_images() = image;
  if (worker.draining) *hello->mutable_draining() = *worker.draining;
  Do(WorkerReported{worker.session, std::move(message)});
}

void TestCluster::Disconnect(const std::string& name) {
  const SessionId session = std::exchange(workers_.at(name).session, 0);
  Do(SessionClosed{session});
}

Effects TestCluster::SendFrom(const std::string& worker, v1::WorkerMessage message) {
  return Do(WorkerReported{workers_.at(worker).session, std::move(message)});
}

void TestCluster::Heartbeat() {
  for (auto& [name, worker] : workers_) {
    if (worker.session == 0) continue;
    v1::WorkerMessage message;
    message.mutable_heartbeat();
    SendFrom(name, std::move(message));
  }
}

Reply TestCluster::Submit(const v1::JobSpec& spec, const std::string& request_id) {
  CreateJobCall call{next_call++, {}};
  *call.request.mutable_job() = spec;
  call.request.set_request_id(request_id);
  const Effects effects = Do(call);
  TROUPE_CHECK(effects.replies.size() == 1);
  return effects.replies[0];
}

Reply TestCluster::SubmitOnce(const v1::JobSpec& spec, const std::string& request_id) {
  CreateJobCall call{next_call++, {}};
  *call.request.mutable_job() = spec;
  call.request.set_request_id(request_id);
  call.request.set_only_once(true);
  return Do(call).replies.at(0);
}

std::string TestCluster::WorkerOf(const std::string& job, int32_t rank) const {
  return state_.jobs.at(job).last_group.ranks(rank).worker();
}

void TestCluster::StartRanks(const std::string& job, int64_t step) {
  const uint64_t epoch = state_.jobs.at(job).record.group_epoch();
  const int ranks = state_.jobs.at(job).plan.ranks_size();
  for (int rank = 0; rank < ranks; ++rank) {
    TestWorker& worker = workers_.at(WorkerOf(job, rank));
    v1::HeldGroup* held = nullptr;
    for (v1::HeldGroup& candidate : worker.held) {
      if (candidate.job() == job && candidate.group_epoch() == epoch) held = &candidate;
    }
    if (held == nullptr) {
      held = &worker.held.emplace_back();
      held->set_job(job);
      held->set_group_epoch(epoch);
    }
    held->add_ranks(rank);
    v1::WorkerMessage message;
    message.mutable_rank_address()->set_job(job);
    message.mutable_rank_address()->set_group_epoch(epoch);
    message.mutable_rank_address()->set_rank(rank);
    message.mutable_rank_address()->set_pid(1000 + rank);
    message.mutable_rank_address()->set_address(fmt::format("address-{}", rank));
    SendFrom(worker.name, std::move(message));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    v1::WorkerMessage message;
    message.mutable_rank_ready()->set_job(job);
    message.mutable_rank_ready()->set_group_epoch(epoch);
    message.mutable_rank_ready()->set_rank(rank);
    message.mutable_rank_ready()->set_step(step);
    SendFrom(WorkerOf(job, rank), std::move(message));
  }
}

Effects TestCluster::Report(const std::string& job, int64_t step, int32_t rank) {
  v1::WorkerMessage message;
  v1::StepReport* const report = message.mutable_step_report();
  report->set_job(job);
  report->set_group_epoch(state_.jobs.at(job).record.group_epoch());
  report->set_rank(rank);
  report->set_step(step);
  report->mutable_event()->set_loss(1.0 / static_cast<double>(step));
  report->mutable_event()->set_tokens(100);
  report->set_step_seconds(0.5);
  report->set_model_flops(1e6);
  return SendFrom(WorkerOf(job, rank), std::move(message));
}

Effects TestCluster::Vote(const std::string& job, int64_t attempt, int64_t step, int32_t rank) {
  const std::string worker = WorkerOf(job, rank);
  v1::WorkerMessage message;
  v1::ShardDone* const vote = message.mutable_shard_done();
  vote->set_job(job);
  vote->set_group_epoch(state_.jobs.at(job).record.group_epoch());
  vote->set_rank(rank);
  vote->set_attempt(attempt);
  vote->set_step(step);
  vote->set_incarnation(workers_.at(worker).incarnation);
  vote->mutable_state()->set_step(step);
  vote->add_shards()->set_name(fmt::format("shard-{}.safetensors", rank));
  return SendFrom(worker, std::move(message));
}

void TestCluster::VoteAll(const std::string& job, int64_t attempt, int64_t step) {
  const int ranks = state_.jobs.at(job).plan.ranks_size();
  for (int rank = 0; rank < ranks; ++rank) Vote(job, attempt, step, rank);
}

Effects TestCluster::WriteManifest(const std::string& job, int64_t attempt) {
  v1::WorkerMessage message;
  v1::ManifestDone* const done = message.mutable_manifest_done();
  done->set_job(job);
  done->set_group_epoch(state_.jobs.at(job).record.group_epoch());
  done->set_attempt(attempt);
  done->set_digest(fmt::format("sha256:{}", attempt));
  done->set_bytes(1000);
  return SendFrom(WorkerOf(job, 0), std::move(message));
}

void TestCluster::Commit(const std::string& job, int64_t attempt, int64_t step) {
  VoteAll(job, attempt, step);
  WriteManifest(job, attempt);
}

Effects TestCluster::Verified(const std::string& job, int64_t attempt, bool ok, bool damaged) {
  v1::WorkerMessage message;
  v1::CheckpointVerified* const verified = message.mutable_checkpoint_verified();
  verified->set_job(job);
  verified->set_attempt(attempt);
  const auto& checkpoints = state_.jobs.at(job).checkpoints;
  if (checkpoints.contains(attempt)) verified->set_path(checkpoints.at(attempt).path());
  verified->set_ok(ok);
  verified->set_damaged(damaged);
  if (!ok) verified->set_reason("rank-00000.safetensors: a reason");
  return SendFrom(WorkerOf(job, 0), std::move(message));
}

Effects TestCluster::Deleted(const std::string& job, int64_t attempt) {
  v1::WorkerMessage message;
  v1::CheckpointDeleted* const deleted = message.mutable_checkpoint_deleted();
  deleted->set_job(job);
  deleted->set_attempt(attempt);
  const auto& checkpoints = state_.jobs.at(job).checkpoints;
  if (checkpoints.contains(attempt)) deleted->set_path(checkpoints.at(attempt).path());
  const std::string worker = WorkerOf(job, 0);
  for (const v1::CoordinatorMessage& asked : workers_.at(worker).inbox) {
    if (asked.has_delete_checkpoint() && asked.delete_checkpoint().attempt() == attempt)
      deleted->set_none_writes(asked.delete_checkpoint().none_writes());
  }
  return SendFrom(worker, std::move(message));
}

void TestCluster::VerifyAll(const std::string& job) {
  std::vector<v1::CoordinatorMessage>& inbox = workers_.at(WorkerOf(job, 0)).inbox;
  while (true) {
    const auto asked = std::find_if(inbox.begin(), inbox.end(), [](const auto& message) {
      return message.has_verify_checkpoint();
    });
    if (asked == inbox.end()) return;
    const int64_t attempt = asked->verify_checkpoint().attempt();
    inbox.erase(asked);
    Verified(job, attempt, true);
  }
}

void TestCluster::StopRanks(const std::string& job, uint64_t epoch,
                            const std::vector<std::string>& workers) {
  for (const std::string& name : workers) {
    TestWorker& worker = workers_.at(name);
    for (const v1::HeldGroup& held : std::exchange(worker.held, {})) {
      if (held.job() != job || held.group_epoch() != epoch) {
        worker.held.push_back(held);
        continue;
      }
      for (const int32_t rank : held.ranks()) {
        v1::WorkerMessage message;
        message.mutable_rank_stopped()->set_job(job);
        message.mutable_rank_stopped()->set_group_epoch(epoch);
        message.mutable_rank_stopped()->set_rank(rank);
        SendFrom(name, std::move(message));
      }
    }
  }
}

Effects TestCluster::Crash(const std::string& job, int32_t rank, int exit_code) {
  v1::WorkerMessage message;
  message.mutable_rank_stopped()->set_job(job);
  message.mutable_rank_stopped()->set_group_epoch(state_.jobs.at(job).record.group_epoch());
  message.mutable_rank_stopped()->set_rank(rank);
  message.mutable_rank_stopped()->set_crashed(true);
  if (exit_code == 0) message.mutable_rank_stopped()->set_signal(9);
  message.mutable_rank_stopped()->set_exit_code(exit_code);
  return SendFrom(WorkerOf(job, rank), std::move(message));
}

const v1::CoordinatorMessage* TestCluster::Last(const std::string& worker,
                                                v1::CoordinatorMessage::MessageCase kind) {
  const std::vector<v1::CoordinatorMessage>& inbox = workers_.at(worker).inbox;
  for (auto message = inbox.rbegin(); message != inbox.rend(); ++message) {
    if (message->message_case() == kind) return &*message;
  }
  return nullptr;
}

int TestCluster::Count(const std::string& worker, v1::CoordinatorMessage::MessageCase kind) {
  int count = 0;
  for (const v1::CoordinatorMessage& message : workers_.at(worker).inbox)
    count += message.message_case() == kind;
  return count;
}

std::vector<std::string> TestCluster::Events(const std::string& job) const {
  const StatusOr<std::vector<v1::JobEvent>> events = ReadEvents(store_, job);
  TROUPE_CHECK_OK(events.status());
  std::vector<std::string> names;
  for (const v1::JobEvent& event : *events) names.push_back(event.event());
  return names;
}

void RunJob(TestCluster& cluster, int ranks, int workers, int64_t steps) {
  for (int worker = 0; worker < workers; ++worker)
    cluster.Connect(fmt::format("worker-{}", worker));
  v1::JobSpec spec = TestSpec("a", ranks, steps);
  spec.mutable_checkpoint()->set_interval(10);
  cluster.Submit(spec);
  cluster.StartRanks("a");
}

void ReportUpTo(TestCluster& cluster, int64_t from, int64_t to) {
  for (int64_t step = from; step <= to; ++step) cluster.Report("a", step);
}

int SecondsUntilBroken(TestCluster& cluster, int limit) {
  const int64_t restarts = cluster.job("a").record.restarts();
  for (int second = 1; second <= limit; ++second) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
    if (cluster.job("a").record.restarts() != restarts) return second;
  }
  return limit + 1;
}

int64_t AttemptOf(const TestCluster& cluster, int64_t step) {
  for (const auto& [number, attempt] : cluster.job("a").attempts) {
    if (attempt.record.step() == step) return number;
  }
  ADD_FAILURE() << "no attempt of step " << step;
  return 0;
}

}  // namespace troupe
