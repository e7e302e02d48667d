#include "cli/job_input.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/file_system.h"
#include "base/flag_parser.h"
#include "data/job_data.h"
#include "interop/import.h"
#include "plan/job/path_hints.h"
#include "plan/job/violation.h"
#include "plan/make_plan.h"

namespace troupe {
namespace {

constexpr std::string_view kStandardInput = "-";  // in place of a job file

StatusOr<std::string> WorkingDirectory() {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error) return ErrnoStatus(error.value(), "working directory");
  TROUPE_RETURN_IF_ERROR(CheckText("working directory", here.string()));
  return here.string();
}

// Returns what standard input has until its end, or a part of it that is larger than a job may be.
// INVALID_ARGUMENT if that is nothing.
StatusOr<std::string> ReadStandardInput() {
  std::string text;
  // Where it is closed, a library may have opened a descriptor of the kernel in its place, which is
  // of no type of file.
  struct stat input {};
  const bool is_open = fstat(STDIN_FILENO, &input) == 0 && (input.st_mode & S_IFMT) != 0;
  char part[1 << 16];
  while (is_open && text.size() <= kMaxJobFileBytes) {
    const ssize_t count = read(STDIN_FILENO, part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus(errno, "read standard input");
    if (count == 0) break;
    text.append(part, static_cast<size_t>(count));
  }
  if (text.empty()) {
    return InvalidArgument(
        "standard input: is empty or closed, and - reads the job file from it; pipe one into the "
        "command, or name its path");
  }
  return text;
}

StatusOr<LoadedJob> LoadStandardInput(const std::vector<std::string>& overrides) {
  TROUPE_ASSIGN_OR_RETURN(std::string folder, WorkingDirectory());
  TROUPE_ASSIGN_OR_RETURN(std::string text, ReadStandardInput());
  return ReadJob({std::move(text), "standard input", std::move(folder)}, overrides);
}

// Copies the configuration of model.from into the other keys of the model.
Status InlineModel(LoadedJob* job) {
  if (!job->spec.model().has_from()) return OkStatus();
  PosixFileSystem files;
  const std::string from = job->spec.model().from();
  if (files.Stat(from, SymbolicLinks::kFollow).status().code() == StatusCode::kNotFound) {
    const auto stated = std::filesystem::path(from).lexically_relative(job->folder);
    return RefuseField(StatusCode::kInvalidArgument, "model.from",
                       "is {}: there is no such directory{}", from, ModelFromHint(stated.string()));
  }
  const Status inlined = InlineHfModel(files, job->spec.mutable_model());
  if (inlined.ok()) return inlined;
  // The message begins with the key.
  const std::string_view message = Message(inlined);
  const size_t end = message.find_first_of(": ");
  if (end == std::string_view::npos) return inlined;
  const std::string key(message.substr(0, end));
  const std::string_view rest = message.substr(end);
  if (!rest.starts_with(':')) return RefuseField(inlined.code(), key, "{}", rest.substr(1));
  return RefuseField(inlined.code(), key, "is {}{}", from, rest);
}

}  // namespace

StatusOr<LoadedJob> LoadJob(const CommandLine& line) {
  const std::string& path = line.positional()[0];
  StatusOr<LoadedJob> job = path == kStandardInput ? LoadStandardInput(line.Get(kSetFlag))
                                                   : LoadJobFile(path, line.Get(kSetFlag));
  if (job.ok()) TROUPE_RETURN_IF_ERROR(WithPlaces(InlineModel(&*job), job->places));
  return job;
}

StatusOr<v1::JobSpec> CompleteAndCheck(const v1::JobSpec& spec) {
  TROUPE_ASSIGN_OR_RETURN(v1::JobSpec complete, CompleteJobSpec(spec));
  TROUPE_RETURN_IF_ERROR(MakeUnplacedPlan(complete).status());
  return complete;
}

StatusOr<Dataset> OpenData(const v1::JobSpec& complete) {
  PosixFileSystem files;
  auto dataset = Dataset::Open(files, MakeDatasetOptions(complete));
  if (dataset.ok()) return dataset;
  return RefuseData(complete, KeyToBlame(dataset.status()), dataset.status());
}

Status CheckData(const v1::JobSpec& complete) { return OpenData(complete).status(); }

Status ResolvePathsHere(v1::JobSpec* spec) {
  TROUPE_ASSIGN_OR_RETURN(const std::string here, WorkingDirectory());
  ResolvePaths(here, spec);
  return OkStatus();
}

}  // namespace troupe
