// The command plan.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/file_system.h"
#include "base/program/program.h"
#include "base/text/count_text.h"
#include "cli/commands.h"
#include "cli/compile/compile_plan.h"
#include "cli/job_input.h"
#include "cli/output/output_file.h"
#include "cli/output/plan_text.h"
#include "cli/output/relative_path.h"
#include "cli/output/text_style.h"
#include "plan/cost/fault_cost.h"
#include "plan/cost/memory_fit.h"
#include "plan/device/device_profile.h"
#include "plan/device/device_traits.h"
#include "plan/device/tpu_model.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/job/violation.h"
#include "plan/layout/slice_placement.h"
#include "plan/make_plan.h"
#include "plan/search/search.h"
#include "plan/search/search_text.h"
#include "plan/text/plan_json.h"
#include "plan/validate/decoded_job.h"
#include "plan/validate/stage_slices.h"
#include "plan/validate/validate.h"
#include "report/report_html.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

constexpr NumberFlag<int> kPlannedWorkersFlag{
    {"--workers", "N",
     "expected number of ranks; a job whose degrees multiply to another number is refused"},
    {1, 1 << 20}};
constexpr SwitchFlag kSearchFlag{
    "--search", "",
    "proposes the fastest layouts for --workers devices of --profile, with the reasons against the "
    "others"};
constexpr TextFlag kProfileFlag{
    "--profile", "FILE",
    "device profile (docs/planning.md), from which step time and MFU are estimated and the "
    "schedule is chosen where it is auto"};

constexpr SwitchFlag kCompileFlag{
    "--compile", "",
    "compiles the stages for the TPU of --profile and states the memory that their compiler needs; "
    "needs libtpu, but no TPU (docs/tpu.md)"};

constexpr TextFlag kHtmlFlag{
    "--html", "FILE",
    "also draws layout, stages, memory and schedule into FILE, a page that needs no network"};

constexpr SwitchFlag kVerboseFlag{
    "--verbose", "",
    "also prints all actions and ranks, the values at the peak of memory, owners, what each axis "
    "replicates, the channels of samples and the options of a compiler"};

constexpr int kMostDevicesOfSearch = 1 << 16;

struct Planned {
  v1::JobSpec spec;  // with defaults
  v1::Plan plan;
  std::optional<StepTime> time;
  KeyPlaces places;
};

StatusOr<v1::DeviceProfile> LoadProfile(const std::string& path) {
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(files, path, kMaxJobFileBytes, SymbolicLinks::kFollow));
  return ParseDeviceProfile(text, path);
}

// Warns if the data that `spec`, which has defaults, states cannot be opened here. A plan needs
// none, so that is no error. Standard output comes first.
void WarnOfData(const v1::JobSpec& spec, const KeyPlaces& places) {
  if (spec.data().train().empty() && spec.data().blend().empty()) return;
  const Status opened = WithPlaces(CheckData(spec), places);
  if (opened.ok()) return;
  FlushOutput();
  PrintMessage("warning: {}; `troupe submit` on this host would refuse the job\n",
               WithRelativePaths(Message(opened), WorkingDirectoryOrNone()));
}

StatusOr<ExitCode> SearchCommand(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(const LoadedJob job, LoadJob(line));
  const std::optional<int> workers = line.Get(kPlannedWorkersFlag);
  const std::string path = line.Get(kProfileFlag).value_or("");
  if (!workers || path.empty()) {
    return InvalidArgument("--search needs --workers N and --profile FILE");
  }
  if (line.Get(kCompileFlag) || line.Get(kHtmlFlag) || line.Get(kVerboseFlag)) {
    return InvalidArgument("--search proposes layouts: state one of them, and then {}",
                           line.Get(kCompileFlag) ? kCompileFlag.name
                           : line.Get(kHtmlFlag)  ? kHtmlFlag.name
                                                  : kVerboseFlag.name);
  }
  TROUPE_ASSIGN_OR_RETURN(const int devices,
                          ParseNumber<int>(kPlannedWorkersFlag.name, fmt::to_string(*workers),
                                           {1, kMostDevicesOfSearch}));
  TROUPE_ASSIGN_OR_RETURN(const v1::DeviceProfile profile, LoadProfile(path));
  TROUPE_RETURN_IF_ERROR(WithPlaces(CheckProfileIsOfJobsDevices(job.spec, profile), job.places));
  TROUPE_ASSIGN_OR_RETURN(
      const SearchResult result,
      WithPlaces(SearchLayouts(job.spec, profile, {.devices = devices}), job.places));
  PrintOutput("{}", Lines{line.wants_json() ? SearchToJson(result) + "\n" : SearchToText(result)});
  v1::JobSpec complete = job.spec;
  ApplyDefaults(&complete);
  WarnOfData(complete, job.places);
  return result.best.empty() ? ExitCode::kFailed : ExitCode::kDone;
}

StatusOr<Planned> PlanOf(const CommandLine& line, v1::JobSpec spec,
                         const std::optional<v1::DeviceProfile>& profile) {
  ApplyDefaults(&spec);
  TROUPE_ASSIGN_OR_RETURN(const v1::Plan plan,
                          MakeUnplacedPlan(spec, profile.has_value() ? &*profile : nullptr));
  const int ranks = plan.ranks_size();
  if (const auto& workers = line.Get(kPlannedWorkersFlag); workers && *workers != ranks) {
    Violations violations;
    violations.Add("parallelism",
                   "has degrees whose product is pipe {} × data_replicate {} × data_shard {} × "
                   "context {} × expert {} × tensor {} = {}, but --workers asks for {}",
                   plan.mesh().pipe(), plan.mesh().data_replicate(), plan.mesh().data_shard(),
                   plan.mesh().context(), plan.mesh().expert(), plan.mesh().tensor(),
                   CountText(ranks, "rank"), *workers);
    return violations.ToStatus();
  }
  Planned planned;
  planned.spec = spec;
  ClusterView cluster = ImaginedCluster(ranks, spec.devices());
  if (profile.has_value() && HasStageSlices(profile->device_model())) {
    TROUPE_ASSIGN_OR_RETURN(cluster, ImaginedSlice(*FindTpuModel(profile->device_model()), ranks));
  } else if (profile.has_value()) {
    for (ClusterDevice& device : cluster.free_devices)
      device.device.mutable_kind()->set_model(profile->device_model());
  }
  TROUPE_ASSIGN_OR_RETURN(planned.plan, PlacePlan(spec, plan, cluster));
  if (profile.has_value()) {
    TROUPE_ASSIGN_OR_RETURN(const DecodedJob decoded, DecodeJob(spec));
    TROUPE_RETURN_IF_ERROR(CheckMemory(decoded, planned.plan, *profile));
    TROUPE_ASSIGN_OR_RETURN(planned.time, EstimateStepTime(decoded, planned.plan, *profile));
  }
  if (line.Get(kCompileFlag)) {
    TROUPE_RETURN_IF_ERROR(CompilePlan(
        spec, [](const std::string& name) { PrintMessage("compile {}\n", name); }, &planned.plan));
  }
  return planned;
}

StatusOr<Planned> PlanOf(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(LoadedJob job, LoadJob(line));
  std::optional<v1::DeviceProfile> profile;
  if (const std::string path = line.Get(kProfileFlag).value_or(""); !path.empty()) {
    TROUPE_ASSIGN_OR_RETURN(profile, LoadProfile(path));
  }
  TROUPE_ASSIGN_OR_RETURN(Planned planned,
                          WithPlaces(PlanOf(line, std::move(job.spec), profile), job.places));
  planned.places = std::move(job.places);
  return planned;
}

Json CheckpointsToJson(const v1::JobSpec& spec) {
  const int64_t steps = spec.checkpoint().interval();
  const int64_t seconds = SecondsBetweenCheckpoints(spec);
  return {{"every_steps", steps > 0 ? Json(steps) : Json(nullptr)},
          {"every_seconds", seconds > 0 ? Json(seconds) : Json(nullptr)},
          {"fault_costs", FaultCost(spec)}};
}

StatusOr<ExitCode> PlanCommand(const CommandLine& line) {
  if (line.Get(kSearchFlag)) return SearchCommand(line);
  PosixFileSystem files;
  if (const auto& path = line.Get(kHtmlFlag))
    TROUPE_RETURN_IF_ERROR(CheckNamesFile(files, kHtmlFlag.name, *path));
  const auto plan = PlanOf(line);
  if (plan.ok()) {
    const StepTime* const time = plan->time ? &*plan->time : nullptr;
    if (const auto& path = line.Get(kHtmlFlag)) {
      const std::string html = PlanHtml(plan->spec, plan->plan, time, FaultCost(plan->spec));
      TROUPE_RETURN_IF_ERROR(WriteOutputFile(files, *path, html));
    }
    if (line.wants_json()) {
      Json json = Json::parse(PlanToJson(plan->plan, time));
      json["checkpoints"] = CheckpointsToJson(plan->spec);
      PrintOutput("{}\n", Dump(json));
    } else {
      const PlanTextOptions options = {.time = time,
                                       .fault_cost = FaultCost(plan->spec),
                                       .working_directory = WorkingDirectoryOrNone(),
                                       .verbose = line.Get(kVerboseFlag)};
      PrintOutput("{}", Lines{PlanToText(plan->plan, options)});
    }
    WarnOfData(plan->spec, plan->places);
    return ExitCode::kDone;
  }
  if (line.wants_json()) {
    Json refused = Json::array();
    for (const Violation& violation : ViolationsOf(plan.status())) {
      refused.push_back({{"field", violation.field}, {"relation", violation.description}});
    }
    PrintOutput("{}\n", Dump({{"refused", std::move(refused)},
                              {"message", std::string(Message(plan.status()))}}));
  }
  return plan.status();
}

}  // namespace

std::vector<Command> PlanCommands() {
  return {{.name = "plan",
           .positionals = "JOB.yaml",
           .least_positionals = 1,
           .most_positionals = 1,
           .summary =
               "Plans a job and prints layout, memory, traffic and schedule, or why it is refused. "
               "Needs no cluster.",
           .flags = {&kSetFlag, &kPlannedWorkersFlag, &kSearchFlag, &kProfileFlag, &kCompileFlag,
                     &kHtmlFlag, &kVerboseFlag},
           .cluster = ClusterUse::kNone,
           .run = PlanCommand}};
}

}  // namespace troupe
