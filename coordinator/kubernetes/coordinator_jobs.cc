#include "coordinator/kubernetes/coordinator_jobs.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "coordinator/access/internal_caller.h"
#include "coordinator/job/job_pace.h"
#include "coordinator/kubernetes/ask_engine.h"
#include "coordinator/machine/coordinator_state.h"
#include "coordinator/state/catalog.h"
#include "coordinator/state/stop.h"
#include "plan/job/job_name.h"

namespace troupe {
namespace {

// The plan waits for at most 30 s, and the check of data lasts at most 20 s.
constexpr Duration kCreateLimit = std::chrono::seconds(90);
// A job that is stopped after a checkpoint ends later; its state shows when.
constexpr Duration kCancelLimit = std::chrono::seconds(5);
constexpr Duration kDeleteLimit = std::chrono::seconds(60);

// A query delays the engine by the time for this many objects.
constexpr size_t kObjectsOfQuery = 256;

// A job, and the figures of its newest step if the catalog does not have them yet.
struct SeenJob {
  std::string id;
  JobFacts facts;
  std::optional<v1::StepEvent> newest;
};

std::string FailureText(const v1::Failure& failure) {
  if (failure.worker().empty()) return fmt::format("{}: {}", failure.cause(), failure.message());
  return fmt::format("{} on {}: {}", failure.cause(), failure.worker(), failure.message());
}

SeenJob JobFactsOf(const Job& job) {
  SeenJob seen{.id = job.id()};
  JobFacts& facts = seen.facts;
  facts.name = job.id();
  facts.state = ShownState(job);
  facts.has_ranks = job.group.has_value();
  facts.has_folder = job.has_folder();
  facts.is_stopping = IsBeingCancelled(job.record);
  facts.step = job.record.step();
  facts.steps = job.steps();
  facts.restarts = job.record.restarts();
  facts.moves = job.record.moves();
  facts.is_moving = IsMoving(job);
  facts.move_reason = job.record.move_reason();
  facts.waiting_for = job.waiting_for;
  const double pace = MedianStepSeconds(job);
  if (pace > 0 && !HasEnded(job))
    facts.remaining_seconds = pace * static_cast<double>(facts.steps - facts.step);
  if (const v1::CheckpointRecord* const commit = NewestCommit(job))
    facts.last_checkpoint = commit->path();
  if (job.record.has_failure()) facts.failure = FailureText(job.record.failure());
  if (!job.unflushed.empty() && job.unflushed.back().step() == facts.step)
    seen.newest = job.unflushed.back();
  return seen;
}

// Returns the facts with the figures of the job's newest step, unless they are known.
JobFacts WithFigures(const SeenJob& seen, int64_t known_step, const Store& store) {
  JobFacts job = seen.facts;
  std::optional<v1::StepEvent> newest = seen.newest;
  if (!newest && job.step > 0 && job.step != known_step) {
    const auto rows = ReadHistory(store, seen.id, job.step, 1);
    if (rows.ok() && !rows->empty()) newest = rows->front();
  }
  if (!newest || newest->step() != job.step) return job;
  job.loss = newest->loss();
  if (newest->has_mfu()) job.mfu = newest->mfu();
  return job;
}

// Returns the key by which the catalog finds the job that was created with the uid of the object as
// its request id.
std::string KeyOf(const JobOfObject& object) {
  v1::CreateJobRequest request;
  request.mutable_job()->set_name(object.job_name);
  request.set_request_id(object.uid);
  return RequestKey(request);
}

std::optional<SeenJob> FindJobOf(const CoordinatorState& state, const std::string& key) {
  if (const auto used = state.used_requests.find(key); used != state.used_requests.end()) {
    SeenJob removed{.id = used->second.job()};
    removed.facts.name = removed.id;
    removed.facts.is_removed = true;
    return removed;
  }
  const auto id = state.requests.find(key);
  if (id == state.requests.end()) return std::nullopt;
  const auto job = state.jobs.find(id->second);
  if (job == state.jobs.end()) return std::nullopt;
  return JobFactsOf(job->second);
}

}  // namespace

struct CoordinatorJobs::Ended {
  std::mutex mutex;
  std::vector<JobOutcome> outcomes;  // at most one for each call in flight
};

// One call, which lives until gRPC has answered it.
template <typename Request, typename Response>
struct CoordinatorJobs::Call {
  std::shared_ptr<void> open;  // released after the context, which refers to the channel
  grpc::ClientContext context;
  Request request;
  Response response;
};

CoordinatorJobs::CoordinatorJobs(CoordinatorJobsOptions options)
    : options_(std::move(options)),
      stub_(v1::JobService::NewStub(options_.channel)),
      ended_(std::make_shared<Ended>()) {}

CoordinatorJobs::~CoordinatorJobs() = default;

StatusOr<std::vector<std::optional<JobFacts>>> CoordinatorJobs::Look(
    const std::vector<JobOfObject>& objects) {
  std::vector<std::optional<JobFacts>> facts;
  for (size_t begin = 0; begin < objects.size(); begin += kObjectsOfQuery) {
    const size_t end = std::min(begin + kObjectsOfQuery, objects.size());
    std::vector<std::string> keys;
    for (size_t i = begin; i < end; ++i) keys.push_back(KeyOf(objects[i]));
    const auto read = [keys = std::move(keys)](const CoordinatorState& state) {
      std::vector<std::optional<SeenJob>> seen;
      for (const std::string& key : keys) seen.push_back(FindJobOf(state, key));
      return seen;
    };
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::optional<SeenJob>> seen,
                            AskEngine(*options_.engine, read));
    for (size_t i = begin; i < end; ++i) {
      facts.emplace_back();
      if (const std::optional<SeenJob>& job = seen[i - begin])
        facts.back() = WithFigures(*job, objects[i].known_step, *options_.store);
    }
  }
  return facts;
}

bool CoordinatorJobs::HasRoom() const { return in_flight_ < kMostCalls; }

template <typename Request, typename Response, typename Begin>
void CoordinatorJobs::Start(const std::string& uid, const Request& request, Duration limit,
                            bool may_last, Begin begin) {
  ++in_flight_;
  const auto call = std::make_shared<Call<Request, Response>>();
  call->open = options_.begin_call();
  call->context.set_deadline(std::chrono::system_clock::now() +
                             std::chrono::ceil<std::chrono::milliseconds>(limit));
  call->context.AddMetadata(kInternalCallerKey, options_.secret);
  call->request = request;
  begin(&call->context, &call->request, &call->response,
        [call, uid, may_last, ended = ended_, wake = options_.wake](const grpc::Status& status) {
          const auto code = static_cast<StatusCode>(status.error_code());
          const bool is_done = may_last && code == StatusCode::kDeadlineExceeded;
          {
            const std::lock_guard lock(ended->mutex);
            ended->outcomes.push_back(
                {uid, is_done ? OkStatus() : MakeStatus(code, status.error_message())});
          }
          wake();
        });
}

void CoordinatorJobs::Create(const std::string& uid, const v1::JobSpec& job) {
  v1::CreateJobRequest request;
  *request.mutable_job() = job;
  request.set_request_id(uid);
  request.set_only_once(true);
  Start<v1::CreateJobRequest, v1::CreateJobResponse>(
      uid, request, kCreateLimit, false,
      [this](auto... arguments) { stub_->async()->CreateJob(arguments...); });
}

void CoordinatorJobs::Cancel(const std::string& uid, const std::string& job, bool checkpoint) {
  v1::CancelJobRequest request;
  request.set_name(JobName(job));
  request.set_checkpoint(checkpoint);
  Start<v1::CancelJobRequest, v1::CancelJobResponse>(
      uid, request, kCancelLimit, true,
      [this](auto... arguments) { stub_->async()->CancelJob(arguments...); });
}

void CoordinatorJobs::Resume(const std::string& uid, const std::string& job) {
  v1::ResumeJobRequest request;
  request.set_name(JobName(job));
  Start<v1::ResumeJobRequest, v1::ResumeJobResponse>(
      uid, request, kCreateLimit, false,
      [this](auto... arguments) { stub_->async()->ResumeJob(arguments...); });
}

void CoordinatorJobs::Delete(const std::string& uid, const std::string& job) {
  v1::DeleteJobRequest request;
  request.set_name(JobName(job));
  Start<v1::DeleteJobRequest, v1::DeleteJobResponse>(
      uid, request, kDeleteLimit, true,
      [this](auto... arguments) { stub_->async()->DeleteJob(arguments...); });
}

std::vector<JobOutcome> CoordinatorJobs::TakeOutcomes() {
  const std::lock_guard lock(ended_->mutex);
  in_flight_ -= static_cast<int>(ended_->outcomes.size());
  return std::exchange(ended_->outcomes, {});
}

}  // namespace troupe
