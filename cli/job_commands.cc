// The commands submit, list, describe, watch, cancel, delete, resume, logs and workers.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/program/program.h"
#include "base/text/wrapped.h"
#include "cli/cancel_call.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/job_input.h"
#include "cli/job_logs.h"
#include "cli/output/colour.h"
#include "cli/output/describe_text.h"
#include "cli/output/job_table.h"
#include "cli/output/list_filter.h"
#include "cli/output/text_style.h"
#include "cli/output/worker_table.h"
#include "cli/tensorboard/event_file.h"
#include "cli/watch.h"
#include "plan/cost/fault_cost.h"
#include "plan/job/job_file.h"
#include "plan/job/job_name.h"
#include "report/text/duration_text.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

constexpr TextFlag kNameFlag{"--name", "NAME", "name of the job (default: the file's)"};
constexpr TextFlag kRequestIdFlag{
    "--request-id", "ID",
    "id of this request: if it was used before, the command returns the job of the first request"};
constexpr SwitchFlag kWaitFlag{
    "--wait", "", "follows the job to its end; Ctrl-C detaches, and the job continues"};
constexpr NumberFlag<int64_t> kFromStepFlag{
    {"--from-step", "STEP", "first step of the history to print (default: 0, the whole history)"},
    {0, int64_t{1} << 40}};
constexpr TextFlag kTensorboardFlag{
    "--tensorboard", "DIR",
    "also writes the steps' figures into a new TensorBoard event file in DIR, which is made if it "
    "does not exist"};
constexpr SwitchFlag kCheckpointFlag{
    "--checkpoint", "", "if no checkpoint can be committed, fails and leaves the job as it is"};
constexpr SwitchFlag kNowFlag{
    "--now", "",
    "without a checkpoint, so that the steps since the last one are lost; also ends the wait of "
    "another cancel"};
constexpr SwitchFlag kCheckpointsFlag{"--checkpoints", "",
                                      "also removes the directories of its checkpoints"};
constexpr SwitchFlag kDiscardImagesFlag{
    "--discard-images", "",
    "continues from the newest commit, even if the images, which are the state that ranks saved on "
    "their workers, are newer"};
constexpr TextFlag kDrainReasonFlag{"--reason", "TEXT",
                                    "why, for those who list the workers (default: none)"};
constexpr RepeatedFlag kStateFlag{
    "--state", "STATE", "only jobs in this state; given several times: in any of these states",
    false, "QUEUED STARTING RUNNING CHECKPOINTING RECOVERING MOVING SUCCEEDED FAILED CANCELLED"};
constexpr TextFlag kNamespaceFlag{
    "--namespace", "NAME",
    "only jobs in this namespace: default, or the part of their names before a dot"};
constexpr NumberFlag<int32_t> kRankFlag{{"--rank", "R", "only this rank"}, {0, 1 << 20}};
constexpr SwitchFlag kFollowFlag{
    "-f", "", "also prints what is logged from now on, until the job ends; Ctrl-C ends it"};
constexpr NumberFlag<int64_t> kTailFlag{{"--tail", "N", "only the last N lines"},
                                        {0, int64_t{1} << 40}};
constexpr TextFlag kSinceFlag{
    "--since", "TIME",
    "only lines of the last TIME, such as 15m or 1h30m (d, h, m, s), by the clocks of the hosts"};

// Small enough for gRPC's message limit.
constexpr int kJobsOfPage = 100;

// Returns an id that no other submission has: 128 random bits.
StatusOr<std::string> MakeRequestId() {
  unsigned char bytes[16];
  std::ifstream random("/dev/urandom", std::ios::binary);
  if (!random.read(reinterpret_cast<char*>(bytes), sizeof bytes)) {
    return Internal("cannot read /dev/urandom");
  }
  std::string text;
  for (unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

void PrintNameAndState(const CommandLine& line, const v1::Job& job) {
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump({{"name", job.name()}, {"state", StateText(job.state())}}));
  } else {
    const bool colours = ShowsColours(STDOUT_FILENO);
    WriteOutput(fmt::format(
        "{} {}\n", PrintableLine(job.name()),
        InColour(colours ? ColourOf(job.state()) : Colour::kNone, StateText(job.state()))));
  }
}

StatusOr<ExitCode> SubmitSpec(const CommandLine& line, const v1::JobSpec& spec) {
  InterruptWatch interrupt;
  TROUPE_ASSIGN_OR_RETURN(const v1::JobSpec complete, CompleteAndCheck(spec));
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  // With a remote coordinator, the ranks check the data at start.
  if (IsLocalAddress(client.address())) TROUPE_RETURN_IF_ERROR(CheckData(complete));
  v1::CreateJobRequest request;
  *request.mutable_job() = spec;
  if (const auto& id = line.Get(kRequestIdFlag)) {
    request.set_request_id(*id);
  } else {
    TROUPE_ASSIGN_OR_RETURN(*request.mutable_request_id(), MakeRequestId());
  }
  TROUPE_ASSIGN_OR_RETURN(
      const v1::CreateJobResponse created,
      client.Call<v1::CreateJobResponse>(
          Client::Repeat::kSafe, Client::kCallLimit, [&](auto* context, auto* response) {
            return client.jobs().CreateJob(context, request, response);
          }));
  for (const auto& warning : created.job().plan().warnings()) {
    PrintMessage("warning: {}\n", warning);
  }
  PrintMessage("{}\n",
               Wrapped(FaultCost(created.job().spec()), TextStyleOf(STDERR_FILENO).columns));
  const std::string& name = created.job().name();
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump({{"name", name}}));
  } else {
    PrintOutput("{}\n", name);
  }
  FlushOutput();
  if (!line.Get(kWaitFlag)) return ExitCode::kDone;
  return WatchJob(&client, &interrupt,
                  {.job = name, .json = line.wants_json(), .lines = !line.wants_json()});
}

// Until the job is read, Ctrl-C ends the command, which may wait for standard input.
StatusOr<ExitCode> Submit(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(LoadedJob job, LoadJob(line));
  if (const auto& name = line.Get(kNameFlag)) {
    job.spec.set_name(*name);
    job.places["name"] = kNameFlag.name;
  }
  return WithPlaces(SubmitSpec(line, job.spec), job.places);
}

// Returns all jobs that the caller may see, in the order of their creation.
StatusOr<std::vector<v1::Job>> ReadJobs(Client* client) {
  std::vector<v1::Job> jobs;
  v1::ListJobsRequest request;
  request.set_page_size(kJobsOfPage);
  PageTokens tokens;
  for (bool more = true; more;) {
    TROUPE_ASSIGN_OR_RETURN(
        v1::ListJobsResponse page,
        client->Call<v1::ListJobsResponse>(
            Client::Repeat::kSafe, Client::kCallLimit, [&](auto* context, auto* response) {
              return client->jobs().ListJobs(context, request, response);
            }));
    for (v1::Job& job : *page.mutable_jobs()) jobs.push_back(std::move(job));
    TROUPE_ASSIGN_OR_RETURN(more, tokens.Next(page, &request));
  }
  return jobs;
}

StatusOr<ExitCode> ListJobs(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(const ListFilter filter,
                          ListFilter::Make(line.Get(kStateFlag), line.Get(kNamespaceFlag)));
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(std::vector<v1::Job> jobs, ReadJobs(&client));
  const size_t all = jobs.size();
  std::erase_if(jobs, [&filter](const v1::Job& job) { return !filter.Accepts(job); });
  if (line.wants_json()) {
    Json entries = Json::array();
    for (const v1::Job& job : jobs) entries.push_back(JobSummaryToJson(job));
    PrintOutput("{}\n", Dump({{"jobs", std::move(entries)}}));
  } else if (jobs.empty()) {
    PrintMessage("{}\n", filter.NoneText(all));
  } else {
    WriteOutput(JobTableText(jobs, SystemClock().WallNanoseconds(), TextStyleOf(STDOUT_FILENO)));
  }
  return ExitCode::kDone;
}

StatusOr<ExitCode> Describe(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(const v1::Job job, client.GetJob(JobName(line.positional()[0])));
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump(JobToJson(job)));
    return ExitCode::kDone;
  }
  DescribeOptions options = {.now_ns = SystemClock().WallNanoseconds(),
                             .style = TextStyleOf(STDOUT_FILENO)};
  if (job.step() > 0) options.last_step = ReadStep(&client, job.name(), job.step());
  const bool saves = job.steps() > 0 && job.step() >= job.steps() && !IsEndState(job.state());
  if (saves && job.waiting_for().empty()) options.save_failure = ReadSaveFailure(&client, job);
  WriteOutput(DescribeText(job, options));
  return ExitCode::kDone;
}

double SecondsSinceEpoch() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

StatusOr<EventFile> MakeEventFile(Client* client, const std::string& directory,
                                  const WatchOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const v1::Job job, client->GetJob(options.job));
  utsname machine{};
  uname(&machine);
  PosixFileSystem files;
  return EventFile::Create(files, directory, job.spec(),
                           {.wall_time = SecondsSinceEpoch(),
                            .host = machine.nodename,
                            .pid = getpid(),
                            .first_step = options.from_step});
}

StatusOr<ExitCode> WatchJob(const CommandLine& line) {
  InterruptWatch interrupt;
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  WatchOptions options = {.job = JobName(line.positional()[0]),
                          .from_step = line.Get(kFromStepFlag).value_or(0),
                          .json = line.wants_json()};
  std::optional<EventFile> events;
  if (const auto& directory = line.Get(kTensorboardFlag)) {
    TROUPE_ASSIGN_OR_RETURN(events, MakeEventFile(&client, *directory, options));
    PrintMessage("writing {}\n", events->path());
    options.record = [&events](const v1::StepEvent& step) {
      return events->Add(step, SecondsSinceEpoch());
    };
  }
  return WatchJob(&client, &interrupt, options);
}

StatusOr<ExitCode> Cancel(const CommandLine& line) {
  InterruptWatch interrupt;
  v1::CancelJobRequest request;
  request.set_name(JobName(line.positional()[0]));
  request.set_checkpoint(line.Get(kCheckpointFlag));
  const bool now = line.Get(kNowFlag);
  if (now && request.checkpoint())
    return InvalidArgument("{} excludes {}", kNowFlag.name, kCheckpointFlag.name);
  request.set_checkpoint_if_training(!now && !request.checkpoint());
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(const std::optional<v1::Job> cancelled,
                          CancelAndWait(&client, &interrupt, request));
  if (!cancelled) return ExitCode::kInterrupted;
  PrintNameAndState(line, *cancelled);
  return ExitCode::kDone;
}

StatusOr<ExitCode> Delete(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  v1::DeleteJobRequest request;
  request.set_name(JobName(line.positional()[0]));
  request.set_checkpoints(line.Get(kCheckpointsFlag));
  TROUPE_ASSIGN_OR_RETURN(const v1::DeleteJobResponse deleted,
                          client.Call<v1::DeleteJobResponse>(
                              Client::Repeat::kNever,
                              request.checkpoints() ? Client::kCheckpointLimit : Client::kCallLimit,
                              [&](auto* context, auto* response) {
                                return client.jobs().DeleteJob(context, request, response);
                              }));
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump({{"name", deleted.job().name()}, {"deleted", true}}));
  } else {
    PrintOutput("{} deleted\n", deleted.job().name());
  }
  return ExitCode::kDone;
}

StatusOr<ExitCode> Resume(const CommandLine& line) {
  v1::ResumeJobRequest request;
  request.set_name(JobName(line.positional()[0]));
  KeyPlaces places;
  for (const std::string& setting : line.Get(kSetFlag)) {
    TROUPE_RETURN_IF_ERROR(ApplyOverride(setting, request.mutable_overrides(), &places));
  }
  request.set_discard_images(line.Get(kDiscardImagesFlag));
  // There is no job file here: relative paths are relative to the shell's directory.
  TROUPE_RETURN_IF_ERROR(ResolvePathsHere(request.mutable_overrides()));
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(
      const v1::ResumeJobResponse resumed,
      WithPlaces(client.Call<v1::ResumeJobResponse>(Client::Repeat::kNever, Client::kCallLimit,
                                                    [&](auto* context, auto* response) {
                                                      return client.jobs().ResumeJob(
                                                          context, request, response);
                                                    }),
                 places));
  PrintNameAndState(line, resumed.job());
  return ExitCode::kDone;
}

StatusOr<ExitCode> Logs(const CommandLine& line) {
  LogOptions options = {.job = JobName(line.positional()[0]),
                        .rank = line.Get(kRankFlag),
                        .selection = {.tail = line.Get(kTailFlag)},
                        .json = line.wants_json()};
  if (const auto& since = line.Get(kSinceFlag)) {
    TROUPE_ASSIGN_OR_RETURN(const int64_t seconds, ParseDuration(kSinceFlag.name, *since));
    options.selection.since_ms = SystemClock().WallNanoseconds() / 1'000'000 - seconds * 1000;
  }
  if (!line.Get(kFollowFlag)) {
    TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
    return PrintLogs(&client, options);
  }
  if (options.json) return InvalidArgument("{} excludes -o json", kFollowFlag.name);
  InterruptWatch interrupt;
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  return FollowLogs(&client, &interrupt, options);
}

StatusOr<ExitCode> Workers(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  std::vector<v1::WorkerStatus> workers;
  v1::ListWorkersRequest request;
  request.set_page_size(kJobsOfPage);
  PageTokens tokens;
  for (bool more = true; more;) {
    TROUPE_ASSIGN_OR_RETURN(
        v1::ListWorkersResponse page,
        client.Call<v1::ListWorkersResponse>(
            Client::Repeat::kSafe, Client::kCallLimit, [&](auto* context, auto* response) {
              return client.cluster().ListWorkers(context, request, response);
            }));
    for (v1::WorkerStatus& worker : *page.mutable_workers()) workers.push_back(std::move(worker));
    TROUPE_ASSIGN_OR_RETURN(more, tokens.Next(page, &request));
  }
  if (line.wants_json()) {
    Json entries = Json::array();
    for (const v1::WorkerStatus& worker : workers) entries.push_back(WorkerToJson(worker));
    PrintOutput("{}\n", Dump({{"workers", std::move(entries)}}));
  } else if (workers.empty()) {
    PrintMessage("there are no workers\n");
  } else {
    WriteOutput(WorkerTableText(workers, TextStyleOf(STDOUT_FILENO)));
  }
  return ExitCode::kDone;
}

void PrintWorker(const CommandLine& line, const v1::WorkerStatus& worker) {
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump(WorkerToJson(worker)));
  } else {
    WriteOutput(WorkerTableText({worker}, TextStyleOf(STDOUT_FILENO)));
  }
}

StatusOr<ExitCode> DrainWorker(const CommandLine& line) {
  v1::DrainWorkerRequest request;
  request.set_name(line.positional()[0]);
  request.set_reason(line.Get(kDrainReasonFlag).value_or(""));
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(
      const v1::DrainWorkerResponse drained,
      client.Call<v1::DrainWorkerResponse>(
          Client::Repeat::kSafe, Client::kCallLimit, [&](auto* context, auto* response) {
            return client.cluster().DrainWorker(context, request, response);
          }));
  PrintWorker(line, drained.worker());
  return ExitCode::kDone;
}

StatusOr<ExitCode> UndrainWorker(const CommandLine& line) {
  v1::UndrainWorkerRequest request;
  request.set_name(line.positional()[0]);
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(
      const v1::UndrainWorkerResponse returned,
      client.Call<v1::UndrainWorkerResponse>(
          Client::Repeat::kSafe, Client::kCallLimit, [&](auto* context, auto* response) {
            return client.cluster().UndrainWorker(context, request, response);
          }));
  PrintWorker(line, returned.worker());
  return ExitCode::kDone;
}

// Adds the argument JOB.
Command WithJob(Command command) {
  command.positionals = "JOB";
  command.least_positionals = command.most_positionals = 1;
  return command;
}

}  // namespace

std::vector<Command> JobCommands() {
  return {
      {.name = "submit",
       .positionals = "JOB.yaml",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary = "Submits a job, which is read from standard input for -; returns when it is "
                  "durable, with --wait when it has ended.",
       .flags = {&kNameFlag, &kRequestIdFlag, &kSetFlag, &kWaitFlag},
       .run = Submit},
      {.name = "list",
       .summary = "Lists jobs: state, progress, loss, age.",
       .flags = {&kStateFlag, &kNamespaceFlag},
       .run = ListJobs},
      WithJob({.name = "describe",
               .summary = "Prints a job's state, ranks, checkpoints and failure.",
               .run = Describe}),
      WithJob({.name = "watch",
               .summary = "Follows a job's steps and events to its end.",
               .flags = {&kFromStepFlag, &kTensorboardFlag},
               .run = WatchJob}),
      WithJob({.name = "cancel",
               .summary = "Stops a job; one that trains commits a checkpoint first.",
               .flags = {&kNowFlag, &kCheckpointFlag},
               .run = Cancel}),
      WithJob({.name = "delete",
               .summary = "Removes a job that has ended from the catalog, with its history, events "
                          "and metrics.",
               .flags = {&kCheckpointsFlag},
               .run = Delete}),
      WithJob(
          {.name = "resume",
           .summary =
               "Queues a cancelled or failed job again; it continues from its newest checkpoint.",
           .flags = {&kSetFlag, &kDiscardImagesFlag},
           .run = Resume}),
      WithJob({.name = "logs",
               .summary = "Prints the logs of a job's ranks, in the order of time.",
               .flags = {&kRankFlag, &kFollowFlag, &kTailFlag, &kSinceFlag},
               .run = Logs}),
      {.name = "workers", .summary = "Lists the cluster's workers.", .run = Workers},
      {.name = "workers drain",
       .positionals = "NAME",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary = "Moves a worker's jobs to others and places nothing more on it.",
       .flags = {&kDrainReasonFlag},
       .run = DrainWorker},
      {.name = "workers undrain",
       .positionals = "NAME",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary = "Ends `workers drain`.",
       .run = UndrainWorker},
  };
}

}  // namespace troupe
