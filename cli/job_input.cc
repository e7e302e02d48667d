#include "cli/job_input.h"

#include <filesystem>

#include "base/file_system.h"
#include "base/flag_parser.h"
#include "data/job_data.h"
#include "interop/import.h"
#include "plan/job/job_file.h"
#include "plan/job/violation.h"
#include "plan/make_plan.h"

namespace troupe {

StatusOr<v1::JobSpec> LoadJob(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(v1::JobSpec spec, LoadJobFile(line.positional()[0], line.Get(kSetFlag)));
  if (spec.model().has_from()) {
    PosixFileSystem files;
    TROUPE_RETURN_IF_ERROR(InlineHfModel(files, spec.mutable_model()));
  }
  return spec;
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
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error) return ErrnoStatus(error.value(), "working directory");
  TROUPE_RETURN_IF_ERROR(CheckText("working directory", here.string()));
  ResolvePaths(here.string(), spec);
  return OkStatus();
}

}  // namespace troupe
