#include "cli/tensorboard/event_file.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <sstream>
#include <utility>
#include <vector>

#include "cli/tensorboard/event_record.h"

namespace troupe {
namespace {

// Returns the keys that the job states, as a block of code of Markdown.
std::string SpecAsMarkdown(const v1::JobSpec& spec) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(spec, &json, options).ok()) return "";
  std::string markdown;
  std::istringstream lines(json);
  for (std::string line; std::getline(lines, line);) markdown += "    " + line + "\n";
  return markdown;
}

std::vector<EventScalar> ScalarsOf(const v1::StepEvent& step) {
  std::vector<EventScalar> scalars = {{"loss", step.loss()},
                                      {"grad_norm", step.grad_norm()},
                                      {"learning_rate", step.learning_rate()},
                                      {"tokens_per_second", step.tokens_per_second()}};
  if (step.has_mfu()) scalars.push_back({"mfu", step.mfu()});
  if (step.has_validation_loss()) scalars.push_back({"validation_loss", step.validation_loss()});
  return scalars;
}

}  // namespace

StatusOr<EventFile> EventFile::Create(FileSystem& files, const std::string& directory,
                                      const v1::JobSpec& spec, const Origin& origin) {
  const Status directories = MakeDirectories(files, directory);
  // A file has the name of the directory.
  if (directories.code() == StatusCode::kFailedPrecondition)
    return InvalidArgument("{}", Message(directories));
  TROUPE_RETURN_IF_ERROR(directories);
  const std::string name =
      fmt::format("events.out.tfevents.{}.{}.{}.0", static_cast<int64_t>(origin.wall_time),
                  origin.host, origin.pid);
  std::string path = JoinPath(directory, name);
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                          files.Create(path, CreateMode::kExclusive));
  EventFile made(std::move(path), std::move(file));
  const EventTime begin = {origin.wall_time, origin.first_step};
  TROUPE_RETURN_IF_ERROR(made.Append(VersionRecord(origin.wall_time) + RestartRecord(begin) +
                                     TextRecord(begin, "job", SpecAsMarkdown(spec))));
  return made;
}

Status EventFile::Add(const v1::StepEvent& step, double now) {
  const EventTime time = {
      step.has_wall_time_ns() ? static_cast<double>(step.wall_time_ns()) * 1e-9 : now, step.step()};
  std::string records;
  if (step.step() <= last_step_) records = RestartRecord(time);
  last_step_ = step.step();
  return Append(records + ScalarsRecord(time, ScalarsOf(step)));
}

Status EventFile::Append(const std::string& records) { return file_->Append(AsBytes(records)); }

}  // namespace troupe
