// The commands checkpoints diff, pin, unpin and rebuild-catalog.
#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <set>

#include "base/file_system.h"
#include "base/program/program.h"
#include "base/text/count_text.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/read/diff.h"
#include "checkpoint/read/survey.h"
#include "cli/checkpoint_folder.h"
#include "cli/client.h"
#include "cli/cluster/absolute_path.h"
#include "cli/commands.h"
#include "cli/output/checkpoint_text.h"
#include "cli/output/text_style.h"
#include "plan/job/job_name.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

// JSON has no number for infinity.
Json NumberToJson(double value) {
  if (std::isfinite(value)) return value;
  return "Infinity";
}

StatusOr<ExitCode> Diff(const CommandLine& line) {
  PosixFileSystem files;
  CheckpointFinder finder(files, line);
  TROUPE_ASSIGN_OR_RETURN(const std::string a, finder.Find(line.positional()[0]));
  TROUPE_ASSIGN_OR_RETURN(const std::string b, finder.Find(line.positional()[1]));
  TROUPE_ASSIGN_OR_RETURN(const v1::CheckpointManifest manifest_a, ReadManifest(files, a, ""));
  TROUPE_ASSIGN_OR_RETURN(const v1::CheckpointManifest manifest_b, ReadManifest(files, b, ""));
  TROUPE_ASSIGN_OR_RETURN(const CheckpointDifference difference,
                          DiffCheckpoints(files, a, manifest_a, b, manifest_b));
  if (line.wants_json()) {
    Json tensors = Json::array();
    for (const TensorDifference& tensor : difference.differing) {
      Json json = {{"name", tensor.name}};
      if (!tensor.reason.empty()) {
        json["reason"] = tensor.reason;
      } else {
        json["elements"] = tensor.elements;
        json["differing"] = tensor.differing;
        json["max_absolute"] = tensor.numeric ? NumberToJson(tensor.max_absolute) : Json();
        json["max_relative"] = tensor.numeric ? NumberToJson(tensor.max_relative) : Json();
      }
      tensors.push_back(std::move(json));
    }
    PrintOutput("{}\n", Dump({{"equal", difference.empty()},
                              {"steps", {manifest_a.state().step(), manifest_b.state().step()}},
                              {"tensors_compared", difference.tensors},
                              {"elements_compared", difference.elements},
                              {"tensors", std::move(tensors)}}));
  } else {
    WriteOutput(DifferenceText(difference, manifest_a.state().step(), manifest_b.state().step(),
                               TextStyleOf(STDOUT_FILENO)));
  }
  return difference.empty() ? ExitCode::kDone : ExitCode::kFailed;
}

StatusOr<ExitCode> SetPinned(const CommandLine& line, bool pinned) {
  v1::PinCheckpointRequest request;
  request.set_job(JobName(line.positional()[0]));
  request.set_pinned(pinned);
  const std::string& which = line.positional()[1];
  int64_t step = 0;
  const auto [end, error] = std::from_chars(which.data(), which.data() + which.size(), step);
  if (error == std::errc() && end == which.data() + which.size()) {
    request.set_step(step);
  } else {
    PosixFileSystem files;
    CheckpointFinder finder(files, line);
    TROUPE_ASSIGN_OR_RETURN(*request.mutable_path(), finder.PathInCatalog(request.job(), which));
  }
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(
      const v1::PinCheckpointResponse response,
      client.Call<v1::PinCheckpointResponse>(
          Client::Repeat::kSafe, Client::kCallLimit, [&](auto* context, auto* answer) {
            return client.checkpoints().PinCheckpoint(context, request, answer);
          }));
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump(CheckpointToJson(response.checkpoint())));
  } else {
    PrintOutput("step {} {}: {}\n", response.checkpoint().step(),
                pinned ? "is pinned" : "has no pin and is subject to retention",
                PathFromHere(response.checkpoint().path()));
  }
  return ExitCode::kDone;
}

StatusOr<ExitCode> Pin(const CommandLine& line) { return SetPinned(line, true); }
StatusOr<ExitCode> Unpin(const CommandLine& line) { return SetPinned(line, false); }

// Returns the request that describes one job to the coordinator.
StatusOr<v1::RebuildJobRequest> RequestOf(const SurveyedJob& found) {
  v1::RebuildJobRequest request;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto parsed =
      google::protobuf::util::JsonStringToMessage(found.spec_json, request.mutable_job(), options);
  if (!parsed.ok()) {
    return InvalidArgument("job_spec_json of its newest manifest is not a job: {}",
                           std::string(parsed.message()));
  }
  if (request.job().name() != found.id) {
    return InvalidArgument("its newest manifest has the specification of another job, \"{}\"",
                           request.job().name());
  }
  // Later checkpoints must be stored next to these, wherever the folder is mounted now.
  request.mutable_job()->mutable_checkpoint()->set_folder(found.folder);
  request.set_create_wall_time_ns(found.create_wall_time_ns);
  for (const v1::CheckpointRecord& record : found.checkpoints) *request.add_checkpoints() = record;
  return request;
}

StatusOr<std::set<std::string>> KnownJobs(Client& client) {
  std::set<std::string> known;
  v1::ListJobsRequest request;
  PageTokens tokens;
  for (bool more = true; more;) {
    TROUPE_ASSIGN_OR_RETURN(
        const v1::ListJobsResponse page,
        client.Call<v1::ListJobsResponse>(
            Client::Repeat::kSafe, Client::kCallLimit, [&](auto* context, auto* response) {
              return client.jobs().ListJobs(context, request, response);
            }));
    for (const v1::Job& job : page.jobs()) known.insert(JobId(job.name()));
    TROUPE_ASSIGN_OR_RETURN(more, tokens.Next(page, &request));
  }
  return known;
}

StatusOr<ExitCode> RebuildCatalog(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(const std::string folder, AbsolutePath(line.positional()[0]));
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(const std::set<std::string> known, KnownJobs(client));
  TROUPE_ASSIGN_OR_RETURN(const Survey survey, SurveyCheckpoints(files, folder));
  Json jobs = Json::array();
  Json left_out = Json::array();
  const auto leave_out = [&](const std::string& path, const std::string& reason) {
    PrintMessage("{}: skipped: {}\n", PathFromHere(path), reason);
    left_out.push_back({{"path", path}, {"reason", reason}});
  };
  for (const LeftOut& one : survey.left_out) leave_out(one.path, one.reason);
  bool failed = false;
  for (const SurveyedJob& found : survey.jobs) {
    const std::string path = JoinPath(found.folder, found.id);
    if (known.contains(found.id)) {
      leave_out(path, fmt::format("the catalog already has job {}", found.id));
      continue;
    }
    const StatusOr<v1::RebuildJobRequest> request = RequestOf(found);
    if (!request.ok()) {
      failed = true;
      leave_out(path, std::string(Message(request.status())));
      continue;
    }
    const auto response = client.Call<v1::RebuildJobResponse>(
        Client::Repeat::kNever, Client::kCallLimit, [&](auto* context, auto* answer) {
          return client.checkpoints().RebuildJob(context, *request, answer);
        });
    if (!response.ok()) {
      if (response.status().code() == StatusCode::kUnavailable) return response.status();
      failed = true;
      leave_out(path, std::string(Message(response.status())));
      continue;
    }
    const v1::Job& job = response->job();
    jobs.push_back(JobToJson(job));
    if (!line.wants_json()) {
      PrintOutput("{}: {} at step {}, {}\n", job.name(), StateText(job.state()), job.step(),
                  CountText(job.checkpoints_size(), "checkpoint"));
    }
  }
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump({{"jobs", std::move(jobs)}, {"left_out", std::move(left_out)}}));
  }
  if (survey.jobs.empty()) return NotFound("{}: contains no checkpoint of a job", folder);
  return failed ? ExitCode::kFailed : ExitCode::kDone;
}

}  // namespace

std::vector<Command> CatalogCommands() {
  return {
      {.name = "checkpoints diff",
       .positionals = "PATH|JOB[@STEP] PATH|JOB[@STEP]",
       .least_positionals = 2,
       .most_positionals = 2,
       .summary = "Lists the tensors in which two checkpoints differ, and by how much. The exit "
                  "code is 1 if there are any.",
       .run = Diff},
      {.name = "checkpoints pin",
       .positionals = "JOB STEP|PATH|JOB[@STEP]",
       .least_positionals = 2,
       .most_positionals = 2,
       .summary = "Pins a checkpoint: the job's retention does not delete it.",
       .run = Pin},
      {.name = "checkpoints unpin",
       .positionals = "JOB STEP|PATH|JOB[@STEP]",
       .least_positionals = 2,
       .most_positionals = 2,
       .summary =
           "Removes the pin of a checkpoint: the job's retention applies to it again at once.",
       .run = Unpin},
      {.name = "checkpoints rebuild-catalog",
       .positionals = "DIR",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary = "Adds jobs that are missing from the catalog, from their checkpoints in DIR.",
       .run = RebuildCatalog},
  };
}

}  // namespace troupe
