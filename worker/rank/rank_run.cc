#include "worker/rank/rank_run.h"

#include <malloc.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/failpoint.h"
#include "base/failure_cause.h"
#include "base/log.h"
#include "collective/flight_text.h"
#include "plan/job/job_choices.h"
#include "plan/job/job_rules.h"
#include "worker/executor/rank_program.h"
#include "worker/executor/shards.h"
#include "worker/rank/affinity.h"
#include "worker/rank/flight_files.h"
#include "worker/rank/group_flight.h"
#include "worker/rank/network_options.h"
#include "worker/rank/rank_environment.h"
#include "worker/rank/rank_links.h"
#include "worker/rank/rank_trace.h"

namespace troupe {
namespace {

constexpr Duration kMetricsInterval = std::chrono::milliseconds(500);

// Whether the error may come from the end of another rank or from an abort and so is not the first
// cause.
bool FollowsFromAnother(const Status& status) {
  return status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kCancelled ||
         status.code() == StatusCode::kAborted;
}

}  // namespace

RankRun::RankRun(v1::BeginRank begin, RankSurroundings surroundings)
    : begin_(std::move(begin)),
      around_(std::move(surroundings)),
      job_files_(*around_.files, begin_.start().roots()),
      folder_proof_(job_files_.checkpoints(), begin_.start(), begin_.rank()),
      traces_(
          {.job = begin_.start().job(),
           .group_epoch = begin_.start().group_epoch(),
           .rank = begin_.rank()},
          [this](const StepTrace& trace, int64_t first, int64_t last) {
            return Remember(trace, first, last);
          },
          [this](v1::WorkerMessage message) { Send(std::move(message)); }),
      reports_(begin_.start().job(), begin_.start().group_epoch(), begin_.rank(),
               {begin_.start().plan().model_flops_per_step(),
                begin_.start().plan().attention_flops_per_step()}),
      thread_([this] { Run(); }) {}

RankRun::~RankRun() { thread_.join(); }

void RankRun::Handle(const v1::CoordinatorMessage& message) {
  const auto is_ours = [this](const auto& body) {
    return body.job() == begin_.start().job() && body.group_epoch() == begin_.start().group_epoch();
  };
  if (message.has_device_book() && is_ours(message.device_book())) {
    directives_.SetDevices(message.device_book());
  } else if (message.has_address_book() && is_ours(message.address_book())) {
    directives_.SetAddresses(message.address_book());
  } else if (message.has_ticket() && is_ours(message.ticket())) {
    directives_.AddTicket(message.ticket(), around_.clock->Now());
  } else if (message.has_checkpoint_request() && is_ours(message.checkpoint_request())) {
    directives_.AddRequest(message.checkpoint_request().intent());
  } else if (message.has_save_images() && is_ours(message.save_images())) {
    directives_.OrderImage(message.save_images().step());
  } else if (message.has_trace_request() && is_ours(message.trace_request())) {
    traces_.Submit(message.trace_request());
  } else if (message.has_write_manifest() && is_ours(message.write_manifest())) {
    const v1::WriteManifest& request = message.write_manifest();
    // If the request is resent while it is in progress, the second run finds the manifest already
    // written.
    if (!manifest_writer_.Run([this, request] { WriteManifestFile(request); }))
      LogWarning("rank", "the manifest of attempt {} is not written: {} wait already",
                 request.manifest().attempt(), kManifestsWaitingMax);
  } else if (message.has_stop_ranks() && message.stop_ranks().job() == begin_.start().job()) {
    if (message.stop_ranks().finished()) {
      directives_.Stop(OkStatus());
    } else {
      if (message.stop_ranks().report_flight()) SendFlight();
      Abort(Cancelled("stopped by the coordinator: {}", message.stop_ranks().reason()));
    }
    directives_.Release();
  }
}

void RankRun::ShareCores(const v1::CoreSet& cores) {
  if (cores.cores().empty()) return;
  std::lock_guard lock(parts_mutex_);
  shared_cores_ = cores.shared_by() > 1;
  if (network_) network_->SetSpinning(!*shared_cores_);
}

void RankRun::CheckTicket(MonotonicTime now) {
  const std::optional<MonotonicTime> end = directives_.expires_at();
  if (end && now >= *end && !directives_.stopped()) {
    Abort(
        WithCause(DeadlineExceeded("the ticket has expired: no message came from the coordinator"),
                  cause::kTicketExpired));
  }
}

void RankRun::Abort(const Status& cause) {
  directives_.Stop(cause);
  std::lock_guard lock(parts_mutex_);
  if (network_) network_->Abort(cause);
  if (saver_) saver_->Stop();
}

void RankRun::Send(v1::WorkerMessage message) {
  v1::RankReport report;
  *report.mutable_worker() = std::move(message);
  around_.send(report);
}

void RankRun::Run() {
  Status status = WithDeviceFault(BuildAndRun());
  if (!status.ok() && !ready_)
    status = ExplainBySharedMemory(std::move(status), around_.shared_memory());
  const std::optional<Status> stopped = directives_.stopped();
  // A requested stop is no failure; the end of a ticket is one.
  const bool asked_for = stopped && (stopped->ok() || stopped->code() == StatusCode::kCancelled);
  traces_.EndSteps();
  if (!status.ok() && !asked_for) {
    // Sent before the failure, so that it is available when the failure is judged.
    if (Hung(stopped ? *stopped : status)) SendFlight();
    ReportFailure(stopped ? *stopped : status);
  }
  directives_.WaitForRelease();
  const Status closed = TearDown();
  around_.progress->Enter(Phase::kIdle);
  malloc_trim(0);
  v1::WorkerMessage message;
  v1::RankStopped& report = *message.mutable_rank_stopped();
  report.set_job(begin_.start().job());
  report.set_group_epoch(begin_.start().group_epoch());
  report.set_rank(begin_.rank());
  if (!closed.ok() || AttachedCause(status) == cause::kDeviceFault) {
    // The transport may still write into this process's memory, the disk may read it, or its device
    // may refuse every call, so the process cannot run another job. The daemon sees it exit.
    LogError("rank", "cannot end: {}", ToString(closed.ok() ? status : closed));
    _exit(3);
  }
  if (backend_) {
    LogInfo("rank", "this process ends, because its device cannot be released for another rank");
    _exit(0);
  }
  Send(std::move(message));
  v1::RankReport idle;
  idle.mutable_idle();
  around_.send(idle);
}

Status RankRun::BuildAndRun() {
  StepProgress& progress = *around_.progress;
  progress.step.store(0, std::memory_order_relaxed);
  progress.operation[0] = '\0';
  progress.Enter(Phase::kBuild);
  const int cores_on_host =
      begin_.cores_on_host() > 0 ? begin_.cores_on_host() : static_cast<int>(AllowedCores().size());
  const int threads = std::max(1, begin_.start().plan().threads_per_rank());
  omp_set_num_threads(threads);
  TROUPE_ASSIGN_OR_RETURN(const Duration hang_limit, Build(threads, cores_on_host));
  TROUPE_ASSIGN_OR_RETURN(v1::WorkerMessage address, MakeAddress());

  progress.Enter(Phase::kLoad);
  const MonotonicTime begin = around_.clock->Now();
  TROUPE_ASSIGN_OR_RETURN(loaded_step_, Load());
  environment_.set_load_seconds(ToSeconds(around_.clock->Now() - begin));
  TROUPE_RETURN_IF_ERROR(MakeSaver());
  TROUPE_RETURN_IF_ERROR(MeetOthers(std::move(address), hang_limit));
  DescribeEnvironment(threads, cores_on_host);
  SendReady();

  TROUPE_RETURN_IF_ERROR(RunSteps());
  ReportMetrics();
  progress.Enter(Phase::kWaitTicket);
  // Stopped between two steps.
  if (const auto stopped = directives_.stopped()) return *stopped;
  SaveLast();
  return OkStatus();
}

StatusOr<Duration> RankRun::Build(int threads, int cores_on_host) {
  const v1::StartRanks& start = begin_.start();
  MonotonicTime begin = around_.clock->Now();
  TROUPE_ASSIGN_OR_RETURN(built_, MakeRankProgram(start.spec(), start.plan(), begin_.rank()));
  Duration built = around_.clock->Now() - begin;
  TROUPE_ASSIGN_OR_RETURN(const NetworkOptions options, MakeNetworkOptions(begin_, cores_on_host));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, OpenTransport());
  TROUPE_ASSIGN_OR_RETURN(auto network, CollectiveNetwork::Make(options, std::move(transport)));
  {
    std::lock_guard lock(parts_mutex_);
    network_ = std::move(network);
    if (shared_cores_) network_->SetSpinning(!*shared_cores_);
  }
  if (const auto stopped = directives_.stopped()) return Cancelled("stopped before it began");
  TROUPE_ASSIGN_OR_RETURN(RankData data, OpenRankData(job_files_.data(), start, begin_.rank()));
  TROUPE_RETURN_IF_ERROR(
      IdentifyBase(BaseFilesOf(job_files_), start, begin_.rank(), &data.identity));
  data_ = std::move(data);
  TROUPE_ASSIGN_OR_RETURN(backend_, MakeBackend(threads));
  begin = around_.clock->Now();
  TROUPE_ASSIGN_OR_RETURN(
      executor_, Executor::Make(std::move(built_->options), built_->program, built_->memory,
                                *backend_, *network_, data_->dataset, around_.progress));
  built += around_.clock->Now() - begin;
  environment_.set_build_seconds(ToSeconds(built));
  executor_->set_trace(&traces_.steps());
  around_.note_executable(&executor_->executable());
  return options.hang_limit;
}

StatusOr<std::unique_ptr<Transport>> RankRun::OpenTransport() {
  const int ranks = begin_.start().ranks_size();
  TROUPE_RETURN_IF_ERROR(CheckSharedMemory(around_.shared_memory(), ranks));
  StatusOr<std::unique_ptr<Transport>> transport = around_.make_transport();
  if (transport.ok()) return transport;
  // Other ranks may have taken the last room since.
  TROUPE_RETURN_IF_ERROR(CheckSharedMemory(around_.shared_memory(), ranks));
  return transport;
}

StatusOr<v1::WorkerMessage> RankRun::MakeAddress() {
  v1::WorkerMessage message;
  v1::RankAddress& address = *message.mutable_rank_address();
  TROUPE_RETURN_IF_ERROR(folder_proof_.Begin(&address));
  address.set_job(begin_.start().job());
  address.set_group_epoch(begin_.start().group_epoch());
  address.set_rank(begin_.rank());
  address.set_pid(getpid());
  address.set_address(network_->address());
  if (begin_.rank() == 0) *address.mutable_data() = data_->identity;
  return message;
}

Status RankRun::MeetOthers(v1::WorkerMessage address, Duration hang_limit) {
  // Sent only now: a rank without an address still works on its own part; from here on each rank
  // waits for others.
  Send(std::move(address));
  meets_others_ = true;
  around_.progress->Enter(Phase::kConnect);
  TROUPE_ASSIGN_OR_RETURN(const std::vector<v1::RankAddress> ranks, directives_.WaitForAddresses());
  TROUPE_RETURN_IF_ERROR(CheckDataOfRank0(data_->identity, ranks, begin_.start(), begin_.rank()));
  TROUPE_RETURN_IF_ERROR(folder_proof_.Finish(ranks, patience()));
  std::vector<std::string> addresses;
  for (const v1::RankAddress& rank : ranks) addresses.push_back(rank.address());
  // Other ranks may be slow to see each other's tokens; they have as long as the coordinator waits.
  const Duration start_limit = FromSeconds(begin_.start().start_seconds());
  TROUPE_RETURN_IF_ERROR(network_->Connect(addresses, std::max(hang_limit, start_limit)));
  TROUPE_RETURN_IF_ERROR(executor_->Start());
  TROUPE_RETURN_IF_ERROR(executor_->FinishLoading(loaded_step_));
  if (begin_.rank() == 0) folder_proof_.Clean();
  LogInfo("rank", "ready after step {}; memory plan {} bytes", loaded_step_,
          built_->memory.total_bytes());
  return OkStatus();
}

void RankRun::SendReady() {
  v1::WorkerMessage message;
  v1::RankReady& ready = *message.mutable_rank_ready();
  ready.set_job(begin_.start().job());
  ready.set_group_epoch(begin_.start().group_epoch());
  ready.set_rank(begin_.rank());
  ready.set_step(loaded_step_);
  *ready.mutable_environment() = environment_;
  Send(std::move(message));
  ready_ = true;
  (void)core_wait_.SecondsSinceLastCall();
}

void RankRun::SaveLast() {
  // If the last state could not be saved, because a disk is full, the coordinator asks again: this
  // rank may hold the only copy of it.
  const int64_t last_step = executor_->applied_step();
  while (const auto order = directives_.WaitForLastOrder(last_step, last_attempt_)) {
    if (order->save) {
      StartCheckpoint(*order->save, last_step);
    } else {
      SaveImage(last_step);
    }
    around_.progress->Enter(Phase::kWaitTicket);
  }
}

void RankRun::DescribeEnvironment(int threads, int cores_on_host) {
  environment_.set_transport(around_.transport);
  for (std::string& link : LinkTexts(network_->links())) environment_.add_links(std::move(link));
  environment_.set_kernel_level(backend_->kernel_level());
  environment_.set_ranks_on_host(begin_.ranks_on_host());
  environment_.set_cores_on_host(cores_on_host);
  environment_.set_threads(threads);
  environment_.mutable_implementations()->Assign(backend_->implementations().begin(),
                                                 backend_->implementations().end());
  const kernels::PreparationCounts counts = backend_->preparation_counts();
  if (counts.tuning_cache_hits) environment_.set_tuning_cache_hits(*counts.tuning_cache_hits);
  host_fallbacks_ =
      LinkFallbacks(network_->links(), begin_.start().plan(), begin_.rank(), HasRdmaDevices());
  if (!begin_.core_table_fault().empty())
    host_fallbacks_.push_back(CoreFallback(begin_.core_table_fault()));
  const std::vector<std::string> fallbacks = Fallbacks();
  for (const std::string& line : fallbacks) LogInfo("rank", "uses a fallback: {}", line);
  DescribeProgram(built_->program, backend_->executed_matmuls(), fallbacks, environ, &environment_);
  size_t programs = 0;
  if (const auto compilation = backend_->compilation()) {
    *environment_.mutable_compilation() = CompilationToProto(*compilation);
    programs = compilation->programs.size();
    LogInfo("rank", "{} programs compiled and {} loaded from the executable cache in {:.3f} s",
            compilation->compiled, compilation->cache_hits, compilation->seconds);
  }
  preparation_.Reported(backend_->fallbacks().size(), programs);
}

std::vector<std::string> RankRun::Fallbacks() const {
  std::vector<std::string> lines = backend_->fallbacks();
  lines.insert(lines.end(), host_fallbacks_.begin(), host_fallbacks_.end());
  return lines;
}

StatusOr<std::unique_ptr<kernels::Backend>> RankRun::MakeBackend(int threads) {
  RankBackendOptions options = MakeRankBackendOptions(begin_, threads);
  options.files = around_.files;
  options.network = network_.get();
  options.interruption = [this] {
    const auto stopped = directives_.stopped();
    return stopped && !stopped->ok() ? *stopped : OkStatus();
  };
  options.peers.exchange_devices = [this](v1::RankDevice device) {
    Send(DeviceMessage(begin_, std::move(device)));
    return directives_.WaitForDevices();
  };
  return around_.make_backend(options);
}

Status RankRun::MakeSaver() {
  const v1::StartRanks& start = begin_.start();
  CheckpointSaverOptions options;
  options.files = &job_files_.checkpoints();
  options.clock = around_.clock;
  options.async =
      SavesAsynchronously(start.spec().checkpoint()) && HasCheckpointFolder(start.spec());
  options.rank = begin_.rank();
  options.vote.set_job(start.job());
  options.vote.set_group_epoch(start.group_epoch());
  options.vote.set_rank(begin_.rank());
  options.vote.set_incarnation(begin_.incarnation());
  options.vote.mutable_state()->set_seed(start.spec().training().seed());
  options.samples_per_step = start.spec().training().global_batch_size();
  options.pin = [this](std::span<std::byte> memory) { return executor_->executable().Pin(memory); };
  options.send = [this](v1::WorkerMessage message) {
    if (message.has_shard_done()) {
      const MonotonicTime now = around_.clock->Now();
      traces_.steps().Add({.begin = now - FromSeconds(message.shard_done().write_seconds()),
                           .end = now,
                           .step = message.shard_done().step(),
                           .phase = Phase::kSaving});
    }
    Send(std::move(message));
  };
  TROUPE_ASSIGN_OR_RETURN(
      auto saver,
      CheckpointSaver::Make(std::move(options),
                            OwnedTensors(owned_, executor_->program(), executor_->executable())));
  std::lock_guard lock(parts_mutex_);
  saver_ = std::move(saver);
  return OkStatus();
}

void RankRun::ReportMetrics() {
  metrics_due_ = around_.clock->Now() + kMetricsInterval;
  v1::RankReport report;
  *report.mutable_metrics() =
      MakeRankMetrics(network_->Statistics(), backend_->CollectiveStatistics(), Fallbacks());
  around_.send(report);
}

std::string RankRun::InFlightOnDevice() const {
  const std::string flights = backend_ ? DescribeInFlight(backend_->Flights()) : "";
  return flights.empty() ? "" : "; in flight on the device: " + flights;
}

bool RankRun::Hung(const Status& status) const {
  return ready_ && AttachedCause(status).empty() && status.code() == StatusCode::kDeadlineExceeded;
}

void RankRun::SendFlight() {
  std::lock_guard lock(parts_mutex_);
  // Before the rank is ready its communicators are still being made.
  if (!network_ || !ready_) return;
  v1::WorkerMessage message;
  v1::RankFlight& report = *message.mutable_rank_flight();
  report.set_job(begin_.start().job());
  report.set_group_epoch(begin_.start().group_epoch());
  report.set_rank(begin_.rank());
  report.set_activity(Describe(*around_.progress));
  for (const CollectiveFlight& flight : network_->Flights())
    *report.add_groups() = GroupFlightOf(flight);
  for (const CollectiveFlight& flight : backend_->Flights())
    *report.add_groups() = GroupFlightOf(flight);
  Send(std::move(message));
}

void RankRun::ReportFailure(const Status& status) {
  LogError("rank", "{}", ToString(status));
  v1::WorkerMessage message;
  v1::RankFailed& failed = *message.mutable_rank_failed();
  failed.set_job(begin_.start().job());
  failed.set_group_epoch(begin_.start().group_epoch());
  failed.set_rank(begin_.rank());
  failed.set_code(static_cast<int>(status.code()));
  failed.set_message(std::string(Message(status)) + InFlightOnDevice());
  failed.set_bad_checkpoint_path(bad_checkpoint_path_);
  failed.set_blamed_worker(folder_proof_.blamed_worker());
  // A rank reads neither data nor a checkpoint through another rank.
  const std::string attached = AttachedCause(status);
  // The checkpoint folder is first used once the data are open.
  failed.set_of_data(attached == cause::kStorage && (!data_ || of_other_folder_));
  // A rank whose wait for others ends before all are ready is not the late one.
  const bool waited = meets_others_ && !ready_ && status.code() == StatusCode::kDeadlineExceeded;
  const bool follows = attached.empty() && !load_failed_ && (waited || FollowsFromAnother(status));
  failed.set_secondary(follows);
  if (follows && network_) {
    for (const int rank : network_->UnreachedRanks()) failed.add_unreached_ranks(rank);
  }
  if (!attached.empty()) {
    failed.set_cause(attached);
  } else if (follows) {
    failed.set_cause(std::string(cause::kCollective));
  } else if (Hung(status)) {
    failed.set_cause(std::string(cause::kHang));
  }
  Send(std::move(message));
}

Status RankRun::TearDown() {
  around_.note_executable(nullptr);
  Status closed;
  if (network_) {
    const std::optional<Status> stopped = directives_.stopped();
    if (!stopped || !stopped->ok()) WriteFlightRecord();
    WriteTrace();
    closed = network_->Close(FromSeconds(begin_.abort_seconds()));
    if (!closed.ok()) return closed;
  }
  folder_proof_.Withdraw();
  // Its current task ends soon, because waits return once stopped.
  manifest_writer_.Stop();
  if (saver_) {
    saver_->Stop();
    if (!saver_->WaitUntilIdle(FromSeconds(begin_.abort_seconds()))) {
      return DeadlineExceeded("checkpoint attempt {} is still being written",
                              saver_->attempt_in_flight());
    }
  }
  std::lock_guard lock(parts_mutex_);
  saver_.reset();
  executor_.reset();
  if (backend_ && !backend_->releases_device()) return OkStatus();
  backend_.reset();
  network_.reset();
  return OkStatus();
}

StatusOr<v1::RankTrace> RankRun::Remember(const StepTrace& trace, int64_t first_step,
                                          int64_t last_step) {
  std::lock_guard lock(parts_mutex_);
  // These objects own the names of operations and groups.
  if (!network_ || !executor_) return Unavailable("rank {} is ending: try again", begin_.rank());
  TracedCollectives collectives;
  collectives.operations = network_->RecordedOperations(&collectives.complete);
  return MakeRankTrace(trace, collectives, first_step, last_step);
}

void RankRun::WriteTrace() {
  const StatusOr<v1::RankTrace> trace = traces_.Collect();
  if (!trace.ok() || trace->last_held_step() == 0) return;
  WriteNextToLog(RankTracePath(begin_.log_path()), trace->SerializeAsString());
}

void RankRun::WriteFlightRecord() {
  WriteNextToLog(FlightRecordPath(begin_.log_path(), begin_.start().group_epoch()),
                 network_->FlightRecorderJson(backend_ ? backend_->FlightRecorderJson() : ""));
  DropFlightRecords(*around_.files, begin_.log_path());
}

void RankRun::WriteNextToLog(const std::string& path, const std::string& bytes) {
  const auto file = around_.files->Create(path, CreateMode::kTruncate);
  const Status status = file.ok() ? (*file)->Append(AsBytes(bytes)) : file.status();
  if (!status.ok()) LogWarning("rank", "{}: {}", path, ToString(status));
}

}  // namespace troupe
