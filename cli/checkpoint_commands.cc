// The commands checkpoints list, create, show and verify.
#include <unistd.h>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/program/program.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/read/verify.h"
#include "cli/checkpoint_folder.h"
#include "cli/client.h"
#include "cli/cluster/absolute_path.h"
#include "cli/commands.h"
#include "cli/output/checkpoint_table.h"
#include "cli/output/checkpoint_text.h"
#include "cli/output/text_style.h"
#include "interop/base_weights.h"
#include "plan/job/job_name.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

constexpr SwitchFlag kAllFlag{"--all", "", "also lists quarantined checkpoints, with the reason"};
constexpr TextFlag kDigestFlag{
    "--digest", "DIGEST",
    "expected digest of the manifest, from `checkpoints list`, which is the "
    "default for JOB[@STEP]"};
constexpr SwitchFlag kLiftFlag{
    "--lift", "",
    "ends the quarantine of an intact checkpoint, or the doubt about it, so that its job may be "
    "restored from it"};

void PrintCheckpoints(const std::vector<v1::CheckpointRecord>& checkpoints) {
  WriteOutput(CheckpointTableText(checkpoints, {.now_ns = SystemClock().WallNanoseconds(),
                                                .style = TextStyleOf(STDOUT_FILENO),
                                                .has_paths_and_digests = true}));
}

StatusOr<ExitCode> ListCheckpoints(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  const std::string job = JobName(line.positional()[0]);
  TROUPE_ASSIGN_OR_RETURN(std::vector<v1::CheckpointRecord> records, ReadCheckpoints(&client, job));
  if (!line.Get(kAllFlag)) {
    std::erase_if(records, [](const v1::CheckpointRecord& record) {
      return record.state() != v1::CHECKPOINT_STATE_COMMITTED;
    });
  }
  if (line.wants_json()) {
    Json checkpoints = Json::array();
    for (const v1::CheckpointRecord& record : records)
      checkpoints.push_back(CheckpointToJson(record));
    PrintOutput("{}\n", Dump({{"checkpoints", std::move(checkpoints)}}));
  } else if (records.empty()) {
    PrintMessage("{} has no {}checkpoint\n", job, line.Get(kAllFlag) ? "" : "committed ");
  } else {
    PrintCheckpoints(records);
  }
  return ExitCode::kDone;
}

StatusOr<ExitCode> Create(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  v1::CreateCheckpointRequest request;
  request.set_job(JobName(line.positional()[0]));
  TROUPE_ASSIGN_OR_RETURN(
      const v1::CreateCheckpointResponse created,
      client.Call<v1::CreateCheckpointResponse>(
          Client::Repeat::kNever, Client::kCheckpointLimit, [&](auto* context, auto* response) {
            return client.checkpoints().CreateCheckpoint(context, request, response);
          }));
  const bool is_committed = created.checkpoint().state() == v1::CHECKPOINT_STATE_COMMITTED;
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump(CheckpointToJson(created.checkpoint())));
  } else if (is_committed) {
    PrintCheckpoints({created.checkpoint()});
  }
  if (is_committed) return ExitCode::kDone;
  return Aborted("{}: the attempt was not committed: {}", request.job(),
                 created.checkpoint().reason());
}

StatusOr<ExitCode> ShowCheckpoint(const CommandLine& line) {
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const std::string path,
                          CheckpointFinder(files, line).Find(line.positional()[0]));
  TROUPE_ASSIGN_OR_RETURN(const v1::CheckpointManifest manifest, ReadManifest(files, path, ""));
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump(ManifestToSummaryJson(manifest, path)));
    return ExitCode::kDone;
  }
  WriteOutput(ManifestText(manifest, TextStyleOf(STDOUT_FILENO)));
  return ExitCode::kDone;
}

// Reports to the coordinator that the quarantined checkpoint is intact again.
Status Lift(const CommandLine& line, const std::string& path, const std::string& digest) {
  v1::LiftQuarantineRequest request;
  TROUPE_ASSIGN_OR_RETURN(*request.mutable_path(), AbsolutePath(path));
  request.set_digest(digest);
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(
      const v1::LiftQuarantineResponse response,
      client.Call<v1::LiftQuarantineResponse>(
          Client::Repeat::kSafe, Client::kCallLimit, [&](auto* context, auto* answer) {
            return client.checkpoints().LiftQuarantine(context, request, answer);
          }));
  PrintMessage(
      "step {} of {} is a committed checkpoint of its job{}\n", response.checkpoint().step(),
      response.checkpoint().job(),
      response.checkpoint().pinned() ? ", and pinned: it is kept until it is unpinned" : "");
  return OkStatus();
}

// Returns the digest that the manifest must have: the requested one, or that of the coordinator;
// with --lift and a path, the current one, so that exactly the verified checkpoint is lifted. Empty
// if any will do.
StatusOr<std::string> ExpectedDigest(FileSystem& files, const CommandLine& line,
                                     const NamedCheckpoint& named) {
  if (const auto& asked = line.Get(kDigestFlag)) return *asked;
  if (!named.digest.empty() || !line.Get(kLiftFlag)) return named.digest;
  return DigestOfManifest(files, named.path);
}

StatusOr<ExitCode> Verify(const CommandLine& line) {
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const NamedCheckpoint named,
                          CheckpointFinder(files, line).Locate(line.positional()[0]));
  const std::string& path = named.path;
  TROUPE_ASSIGN_OR_RETURN(const std::string digest, ExpectedDigest(files, line, named));
  VerifyReport report = VerifyCheckpoint(files, path, digest);
  if (report.failures.empty()) {
    // The base of frozen parameters must be here, and the one that the job was trained on.
    const auto whole = BaseWeights::Open({files, files}, kBaseCheckpoint, path);
    if (!whole.ok())
      report.failures.push_back(
          {.file = "its base", .reason = std::string(Message(whole.status()))});
  }
  Json failures = Json::array();
  for (const VerifyFailure& failure : report.failures) {
    failures.push_back(
        {{"file", failure.file}, {"tensors", failure.tensors}, {"reason", failure.reason}});
    PrintMessage("{}\n", TextOf(failure));
  }
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump({{"path", path},
                              {"step", report.step},
                              {"files", report.files},
                              {"bytes", report.bytes},
                              {"failures", std::move(failures)}}));
  } else if (report.failures.empty()) {
    WriteOutput(VerifiedText(path, report, TextStyleFromHere(STDOUT_FILENO)));
  }
  if (!report.failures.empty()) return ExitCode::kFailed;
  if (line.Get(kLiftFlag)) TROUPE_RETURN_IF_ERROR(Lift(line, path, digest));
  return ExitCode::kDone;
}

}  // namespace

std::vector<Command> CheckpointCommands() {
  const auto one = [](const char* name, const char* positionals, const char* summary,
                      StatusOr<ExitCode> (*run)(const CommandLine&)) {
    return Command{.name = name,
                   .positionals = positionals,
                   .least_positionals = 1,
                   .most_positionals = 1,
                   .summary = summary,
                   .run = run};
  };
  std::vector<Command> commands = {
      one("checkpoints list", "JOB", "Lists a job's committed checkpoints, newest last.",
          ListCheckpoints),
      one("checkpoints create", "JOB",
          "Takes a checkpoint at the next step; returns when it is committed.", Create),
      one("checkpoints show", "PATH|JOB[@STEP]", "Lists the files and tensors of a checkpoint.",
          ShowCheckpoint),
      one("checkpoints verify", "PATH|JOB[@STEP]",
          "Reads every byte of a checkpoint; names the file and tensor that fail. The model "
          "with its frozen parameters must be here, but is not read whole.",
          Verify),
  };
  commands.front().flags = {&kAllFlag};
  commands.back().flags = {&kDigestFlag, &kLiftFlag};
  return commands;
}

}  // namespace troupe
