#include "coordinator/machine/views.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/worker_state.h"
#include "coordinator/history/receipt.h"
#include "coordinator/job/job_view.h"
#include "coordinator/job/move.h"
#include "coordinator/state/job_state.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_name.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

constexpr int kDefaultPage = 100;
constexpr int kLargestPage = 1000;

// Rows [begin, end) of a list.
struct Page {
  size_t begin = 0;
  size_t end = 0;
  std::string next_token;
};

// A token is the number of rows before its page: between two pages a list only grows at its end, or
// shrinks.
StatusOr<Page> PageOf(size_t rows, int32_t page_size, const std::string& token) {
  if (page_size < 0) {
    return RefuseField(StatusCode::kInvalidArgument, "page_size", "is {}, below 0", page_size);
  }
  Page page;
  if (!token.empty()) {
    const auto [end, error] =
        std::from_chars(token.data(), token.data() + token.size(), page.begin);
    if (error != std::errc() || end != token.data() + token.size()) {
      return RefuseField(StatusCode::kInvalidArgument, "page_token",
                         "is \"{}\", which is not the token of an earlier response", token);
    }
  }
  const int size = page_size == 0 ? kDefaultPage : std::min<int>(page_size, kLargestPage);
  page.begin = std::min(page.begin, rows);
  page.end = std::min(page.begin + static_cast<size_t>(size), rows);
  if (page.end < rows) page.next_token = std::to_string(page.end);
  return page;
}

// In addition to those of v1::JobState.
constexpr std::string_view kMovingWord = "MOVING";

// Returns the state that a request for a list names, in upper case. INVALID_ARGUMENT if it is none.
StatusOr<std::string> WantedState(const std::string& given) {
  std::string word = given;
  std::ranges::transform(word, word.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (word.empty() || word == kMovingWord) return word;
  for (int i = v1::JobState_MIN; i <= v1::JobState_MAX; ++i) {
    const auto state = static_cast<v1::JobState>(i);
    if (state != v1::JOB_STATE_UNSPECIFIED && StateName(state) == word) return word;
  }
  return RefuseField(StatusCode::kInvalidArgument, "state", "is \"{}\", which is no state of a job",
                     given);
}

// Whether the job is in the state that `word` names: one that moves has two.
bool IsInState(const Job& job, std::string_view word) {
  return word == kMovingWord ? IsMoving(job) : StateName(ShownState(job)) == word;
}

StatusOr<const Job*> JobNamed(const CoordinatorState& state, const char* field,
                              const std::string& name) {
  const auto job = state.jobs.find(JobId(name));
  if (job == state.jobs.end()) return NoSuchJob(field, name);
  return &job->second;
}

// Adds to the drain of a worker that `job` does not leave it.
void AddStay(const Job& job, const Fleet& fleet, v1::WorkerStatus* status) {
  if (!status->has_drain()) return;
  const std::string why = WhyStays(job, fleet);
  if (why.empty()) return;
  v1::StayingJob& stays = *status->mutable_drain()->add_staying_jobs();
  stays.set_name(JobName(job.id()));
  stays.set_reason(why);
}

// Adds the ranks of `job` on `worker` with known cores.
void AddRanksOn(const std::string& worker, const Job& job, v1::WorkerStatus* status) {
  if (!job.group) return;
  for (const v1::RankPlacement& placement : job.plan.ranks()) {
    const v1::CoreSet& cores = job.group->ranks[static_cast<size_t>(placement.rank())].cores;
    if (placement.worker() != worker || cores.cores().empty()) continue;
    v1::RankCores& rank = *status->add_ranks();
    rank.set_job(JobName(job.id()));
    rank.set_group_epoch(job.group->epoch);
    rank.set_rank(placement.rank());
    *rank.mutable_cores() = cores;
  }
}

// Whether a rank of the lease may run on the worker, as far as is known. The devices of a worker
// that is away stay leased for longer.
bool MayRun(const CoordinatorState& state, const Worker& worker, const v1::LeaseRecord& lease) {
  if (worker.session != 0) return true;
  const auto job = state.jobs.find(lease.job());
  return job != state.jobs.end() && job->second.group &&
         job->second.group->epoch == lease.group_epoch();
}

// Sets the state of the worker, and why it drains.
void FillDrain(const CoordinatorState& state, const Worker& worker, v1::WorkerStatus* status) {
  const bool is_lost = worker.session == 0;
  status->set_state(std::string(is_lost                           ? worker_state::kLost
                                : IsDraining(worker, state.fleet) ? worker_state::kDraining
                                                                  : worker_state::kReady));
  const bool ends = worker.drain && !is_lost;  // a lost worker has ended or will state it again
  const auto order = state.fleet.drains.find(worker.name);
  const bool by_operator = order != state.fleet.drains.end();
  if (!ends && !by_operator) return;
  v1::WorkerDrain& drain = *status->mutable_drain();
  drain.set_by_operator(by_operator);
  if (by_operator) {
    const v1::DrainRecord& record = order->second;
    drain.set_reason(record.reason());
    drain.set_since_wall_time_ns(record.since_wall_time_ns());
    if (record.forgotten_wall_time_ns() != 0) {
      drain.set_order_end_wall_time_ns(record.forgotten_wall_time_ns() +
                                       kForgottenDrainLimit.count());
    }
  }
  // The worker's own reason goes first, because it ends.
  if (!ends) return;
  drain.set_reason(worker.drain->reason);
  drain.set_end_wall_time_ns(worker.drain->end_wall_ns);
}

}  // namespace

Status ViewJob(const CoordinatorState& state, const v1::GetJobRequest& request,
               v1::GetJobResponse* response) {
  TROUPE_ASSIGN_OR_RETURN(const Job* job, JobNamed(state, "name", request.name()));
  *response->mutable_job() = DescribeJob(*job, true);
  return OkStatus();
}

Status ViewReceipt(const CoordinatorState& state, const v1::GetJobReceiptRequest& request,
                   v1::GetJobReceiptResponse* response) {
  TROUPE_ASSIGN_OR_RETURN(const Job* job, JobNamed(state, "name", request.name()));
  *response->mutable_receipt() = MakeReceipt(*job);
  return OkStatus();
}

Status ViewJobs(const CoordinatorState& state, const v1::ListJobsRequest& request,
                const JobFilter& sees, v1::ListJobsResponse* response) {
  TROUPE_ASSIGN_OR_RETURN(const std::string wanted, WantedState(request.state()));
  std::vector<const Job*> jobs;
  for (const auto& [id, job] : state.jobs) {
    if (sees && !sees(id)) continue;
    if (!request.in_namespace().empty() && NamespaceOf(id) != request.in_namespace()) continue;
    if (wanted.empty() || IsInState(job, wanted)) jobs.push_back(&job);
  }
  std::ranges::sort(jobs, {}, [&](const Job* job) {
    const uint64_t sequence = job->record.sequence();
    return request.active_first() ? std::pair(HasEnded(*job), ~sequence)
                                  : std::pair(false, sequence);
  });
  response->set_all_jobs(std::ssize(jobs));
  TROUPE_ASSIGN_OR_RETURN(const Page page,
                          PageOf(jobs.size(), request.page_size(), request.page_token()));
  for (size_t i = page.begin; i < page.end; ++i)
    *response->add_jobs() = DescribeJob(*jobs[i], false);
  response->set_next_page_token(page.next_token);
  return OkStatus();
}

Status ViewCheckpoints(const CoordinatorState& state, const v1::ListCheckpointsRequest& request,
                       v1::ListCheckpointsResponse* response) {
  TROUPE_ASSIGN_OR_RETURN(const Job* job, JobNamed(state, "job", request.job()));
  std::vector<v1::CheckpointRecord> records = ListedCheckpoints(*job);
  TROUPE_ASSIGN_OR_RETURN(const Page page,
                          PageOf(records.size(), request.page_size(), request.page_token()));
  for (size_t i = page.begin; i < page.end; ++i)
    *response->add_checkpoints() = std::move(records[i]);
  response->set_next_page_token(page.next_token);
  return OkStatus();
}

Status ViewCheckpoint(const CoordinatorState& state, const v1::GetCheckpointRequest& request,
                      v1::GetCheckpointResponse* response) {
  TROUPE_ASSIGN_OR_RETURN(const Job* job, JobNamed(state, "job", request.job()));
  const auto finalized = job->checkpoints.find(request.attempt());
  if (finalized != job->checkpoints.end()) {
    *response->mutable_checkpoint() = finalized->second;
    return OkStatus();
  }
  const auto open = job->attempts.find(request.attempt());
  if (open == job->attempts.end())
    return RefuseField(StatusCode::kNotFound, "attempt", "is {}, which job {} does not have",
                       request.attempt(), job->id());
  *response->mutable_checkpoint() = open->second.record;
  return OkStatus();
}

v1::WorkerStatus DescribeWorker(const CoordinatorState& state, const Worker& worker,
                                const JobFilter& sees) {
  v1::WorkerStatus status;
  status.set_name(worker.name);
  FillDrain(state, worker, &status);
  status.set_incarnation(worker.incarnation);
  status.set_pid(worker.hello.pid());
  status.set_host(worker.hello.host());
  status.set_island(worker.hello.island());
  *status.mutable_devices() = worker.hello.devices();
  status.set_metrics_address(worker.hello.metrics_address());
  status.set_memory_bytes(worker.memory_bytes);
  std::set<std::string> jobs;
  for (auto lease = state.fleet.leases.lower_bound({worker.name, 0});
       lease != state.fleet.leases.end() && lease->first.first == worker.name; ++lease) {
    if (!MayRun(state, worker, lease->second)) continue;
    if (!sees || sees(lease->second.job())) jobs.insert(JobName(lease->second.job()));
  }
  for (const std::string& job : jobs) {
    status.add_jobs(job);
    const auto found = state.jobs.find(JobId(job));
    if (found == state.jobs.end()) continue;
    AddRanksOn(worker.name, found->second, &status);
    AddStay(found->second, state.fleet, &status);
  }
  const auto blame = state.fleet.blame.find(worker.name);
  if (blame == state.fleet.blame.end()) return status;
  for (const SetAside& part : blame->second.set_aside) {
    v1::SetAside* const shown = status.add_set_aside();
    if (part.device != kWholeHost) shown->set_device(part.device);
    // The reason names jobs.
    shown->set_reason(sees ? "faults, which operators see" : part.reason);
    shown->set_since_wall_time_ns(part.since_wall_ns);
    shown->set_burn_in_wall_time_ns(part.burn_in_wall_ns);
    shown->set_burning_in(blame->second.burn_in != 0);
  }
  return status;
}

Status ViewWorkers(const CoordinatorState& state, const v1::ListWorkersRequest& request,
                   const JobFilter& sees, v1::ListWorkersResponse* response) {
  std::vector<const Worker*> workers;
  for (const auto& [name, worker] : state.fleet.workers) workers.push_back(&worker);
  std::map<std::string, Worker> forgotten;  // but an operator drains them
  for (const auto& [name, record] : state.fleet.drains) {
    if (state.fleet.workers.contains(name)) continue;
    forgotten[name].name = name;
    workers.push_back(&forgotten[name]);
  }
  std::sort(workers.begin(), workers.end(),
            [](const Worker* a, const Worker* b) { return a->name < b->name; });
  TROUPE_ASSIGN_OR_RETURN(const Page page,
                          PageOf(workers.size(), request.page_size(), request.page_token()));
  for (size_t i = page.begin; i < page.end; ++i)
    *response->add_workers() = DescribeWorker(state, *workers[i], sees);
  response->set_next_page_token(page.next_token);
  return OkStatus();
}

PlanInputs ViewPlanInputs(const CoordinatorState& state, const v1::PlanJobRequest& request) {
  PlanInputs inputs{state.options.planner, request.job(), ListDevices(state.fleet, false)};
  // As in `troupe plan`: fields that a plan does not need, such as a name and data, may be absent.
  FillCheckpointFolder(state.options, &inputs.spec);
  ApplyDefaults(&inputs.spec);
  return inputs;
}

StatusOr<v1::Plan> PlanOn(const PlanInputs& inputs) {
  TROUPE_ASSIGN_OR_RETURN(v1::Plan plan, inputs.planner.make_plan(inputs.spec, nullptr));
  StatusOr<v1::Plan> placed = inputs.planner.place(inputs.spec, plan, inputs.cluster);
  if (placed.ok()) return placed;
  plan.add_warnings(fmt::format("not placed on this cluster: {}", Message(placed.status())));
  return plan;
}

}  // namespace troupe
