#include "cli/checkpoint_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/program/program.h"
#include "checkpoint/format/digest.h"
#include "checkpoint/format/manifest.h"
#include "cli/cluster/absolute_path.h"
#include "cli/output/text_style.h"
#include "plan/job/job_name.h"

namespace troupe {
namespace {

constexpr std::string_view kJobMark = "jobs/";  // begins what is never a path
constexpr int kCheckpointsOfPage = 100;
constexpr size_t kMostListedSteps = 8;

std::optional<int64_t> StepOf(std::string_view text) {
  int64_t step = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, step);
  if (error != std::errc() || end != last || step < 0) return std::nullopt;
  return step;
}

// Returns a sentence about the commits that there are, for one who has asked for another.
std::string CommitsText(const std::vector<v1::CheckpointRecord>& records) {
  std::vector<std::string> steps;
  for (const v1::CheckpointRecord& record : records) {
    if (record.state() == v1::CHECKPOINT_STATE_COMMITTED)
      steps.push_back(fmt::to_string(record.step()));
  }
  if (steps.empty()) return "it has no commit";
  const bool all = steps.size() <= kMostListedSteps;
  if (!all) steps.erase(steps.begin(), steps.end() - kMostListedSteps);
  return fmt::format("{} are of step {}", all ? "its commits" : "its newest commits",
                     fmt::join(steps, ", "));
}

// Checks that the folder has the manifest that the coordinator states of the checkpoint `text`.
Status CheckManifest(FileSystem& files, const std::string& text, const NamedCheckpoint& named) {
  const StatusOr<std::string> digest = DigestOfManifest(files, named.path);
  if (digest.status().code() == StatusCode::kNotFound) {
    return InvalidArgument(
        "{} has no {}: the folder on this host is not the checkpoint {}, or is damaged", named.path,
        kManifestFileName, text);
  }
  TROUPE_RETURN_IF_ERROR(digest.status());
  if (*digest == named.digest) return OkStatus();
  return InvalidArgument(
      "the manifest in {} has the digest {}, not {}: the folder on this host is not the checkpoint "
      "{}, or is damaged",
      named.path, *digest, named.digest, text);
}

}  // namespace

Status CheckCheckpointFolder(FileSystem& files, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const FileInfo info, files.Stat(path, SymbolicLinks::kFollow));
  if (info.kind == FileKind::kDirectory) return OkStatus();
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return InvalidArgument("{} is a file: name the folder of the checkpoint, {}", path,
                         folder.empty() ? "." : folder);
}

StatusOr<std::optional<CheckpointOfJob>> ParseCheckpointOfJob(const std::string& text) {
  const size_t at = text.find('@');
  const std::string job = text.substr(0, at);
  if (!IsJobId(JobId(job))) {
    if (!text.starts_with(kJobMark)) return std::nullopt;
    return InvalidArgument(
        "{0} begins with {1}, so it names a job, but \"{2}\" is no name of one; ./{0} is the path",
        text, kJobMark, JobId(job));
  }
  CheckpointOfJob wanted{.job = JobName(job)};
  if (at == std::string::npos) return wanted;
  wanted.step = StepOf(std::string_view(text).substr(at + 1));
  if (wanted.step) return wanted;
  return InvalidArgument("{}: \"{}\" is not a step; a job's checkpoint is JOB or JOB@STEP", text,
                         text.substr(at + 1));
}

StatusOr<v1::CheckpointRecord> ChooseCheckpoint(const CheckpointOfJob& wanted,
                                                const std::vector<v1::CheckpointRecord>& records) {
  const v1::CheckpointRecord* commit = nullptr;
  const v1::CheckpointRecord* quarantined = nullptr;
  for (const v1::CheckpointRecord& record : records) {
    if (wanted.step && record.step() != *wanted.step) continue;
    if (record.state() == v1::CHECKPOINT_STATE_COMMITTED) commit = &record;
    if (record.state() == v1::CHECKPOINT_STATE_QUARANTINED) quarantined = &record;
  }
  if (commit != nullptr) return *commit;
  if (wanted.step) {
    if (quarantined != nullptr) return *quarantined;
    return OfCoordinator(NotFound("{} has no checkpoint of step {}: {}", wanted.job, *wanted.step,
                                  CommitsText(records)));
  }
  if (quarantined == nullptr)
    return OfCoordinator(NotFound("{} has no committed checkpoint", wanted.job));
  return OfCoordinator(
      NotFound("all checkpoints of {} are quarantined: `troupe checkpoints list {} --all` shows "
               "why, and JOB@STEP names one of them",
               wanted.job, JobId(wanted.job)));
}

StatusOr<std::vector<v1::CheckpointRecord>> ReadCheckpoints(Client* client,
                                                            const std::string& job) {
  std::vector<v1::CheckpointRecord> records;
  v1::ListCheckpointsRequest request;
  request.set_job(job);
  request.set_page_size(kCheckpointsOfPage);
  PageTokens tokens;
  for (bool more = true; more;) {
    TROUPE_ASSIGN_OR_RETURN(
        const v1::ListCheckpointsResponse page,
        client->Call<v1::ListCheckpointsResponse>(
            Client::Repeat::kSafe, Client::kCallLimit, [&](auto* context, auto* response) {
              return client->checkpoints().ListCheckpoints(context, request, response);
            }));
    records.insert(records.end(), page.checkpoints().begin(), page.checkpoints().end());
    TROUPE_ASSIGN_OR_RETURN(more, tokens.Next(page, &request));
  }
  return records;
}

Status CheckHasManifest(FileSystem& files, const std::string& path) {
  const auto info = files.Stat(JoinPath(path, kManifestFileName), SymbolicLinks::kFollow);
  if (info.status().code() != StatusCode::kNotFound) return OkStatus();
  return InvalidArgument("{} has no {}: it is not a checkpoint of Troupe, or its write did not end",
                         path, kManifestFileName);
}

StatusOr<std::string> DigestOfManifest(FileSystem& files, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(files, JoinPath(path, kManifestFileName), kManifestBytesMax,
                                   SymbolicLinks::kRefuse));
  return Sha256Of(AsBytes(text));
}

StatusOr<std::string> CheckpointFinder::Find(const std::string& text) {
  TROUPE_ASSIGN_OR_RETURN(const NamedCheckpoint named, Locate(text));
  TROUPE_RETURN_IF_ERROR(named.digest.empty() ? CheckHasManifest(files_, named.path)
                                              : CheckManifest(files_, text, named));
  return named.path;
}

StatusOr<NamedCheckpoint> CheckpointFinder::Locate(const std::string& text) {
  TROUPE_ASSIGN_OR_RETURN(const std::optional<CheckpointOfJob> wanted, NamedOfJob(text));
  if (!wanted) {
    TROUPE_RETURN_IF_ERROR(CheckCheckpointFolder(files_, text));
    return NamedCheckpoint{.path = text};
  }
  StatusOr<NamedCheckpoint> found = LocateOfJob(*wanted);
  if (found.ok() || text.starts_with(kJobMark)) return found;
  return Annotate(found.status(), fmt::format("{} is not a directory, so it names a job", text));
}

StatusOr<std::string> CheckpointFinder::PathInCatalog(const std::string& job,
                                                      const std::string& text) {
  TROUPE_ASSIGN_OR_RETURN(const std::optional<CheckpointOfJob> wanted, NamedOfJob(text));
  if (!wanted) return AbsolutePath(text);
  if (wanted->job != job) {
    return InvalidArgument("{}{} names a checkpoint of {}, not of {}", text,
                           text.starts_with(kJobMark) ? "" : " is not a directory, so it",
                           wanted->job, job);
  }
  TROUPE_ASSIGN_OR_RETURN(const v1::CheckpointRecord record, ReadRecord(*wanted));
  return record.path();
}

StatusOr<std::optional<CheckpointOfJob>> CheckpointFinder::NamedOfJob(const std::string& text) {
  if (text.starts_with(kJobMark)) return ParseCheckpointOfJob(text);
  const Status folder = CheckCheckpointFolder(files_, text);
  if (folder.ok()) return std::nullopt;
  // A file, such as manifest.json, is more likely meant than a job of that name.
  if (folder.code() == StatusCode::kInvalidArgument && text.find('@') == std::string::npos)
    return InvalidArgument("{}; {}{} would be a job", Message(folder), kJobMark, text);
  return ParseCheckpointOfJob(text);
}

StatusOr<v1::CheckpointRecord> CheckpointFinder::ReadRecord(const CheckpointOfJob& wanted) {
  if (!client_) {
    TROUPE_ASSIGN_OR_RETURN(client_, Client::Make(line_));
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<v1::CheckpointRecord> records,
                          ReadCheckpoints(&*client_, wanted.job));
  return ChooseCheckpoint(wanted, records);
}

StatusOr<NamedCheckpoint> CheckpointFinder::LocateOfJob(const CheckpointOfJob& wanted) {
  TROUPE_ASSIGN_OR_RETURN(const v1::CheckpointRecord record, ReadRecord(wanted));
  const Status there = CheckCheckpointFolder(files_, record.path());
  if (there.code() == StatusCode::kNotFound) {
    return NotFound(
        "the checkpoint of step {} of {} is {}, which is not on this host: run the command on a "
        "host that has the folder, or give the path that it has here",
        record.step(), wanted.job, record.path());
  }
  TROUPE_RETURN_IF_ERROR(there);
  const bool is_quarantined = record.state() == v1::CHECKPOINT_STATE_QUARANTINED;
  PrintMessage("{}, step {}: {}{}\n", wanted.job, record.step(), PathFromHere(record.path()),
               is_quarantined ? ", which is quarantined: " + record.reason() : "");
  return NamedCheckpoint{.path = record.path(), .digest = record.digest()};
}

}  // namespace troupe
