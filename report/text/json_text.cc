#include "report/text/json_text.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "base/check.h"
#include "base/clock.h"

namespace troupe {
namespace {

// The cores of a rank, and how many ranks share them.
Json CoresToJson(const v1::CoreSet& set) {
  return {{"cores", MessageToJson(set)["cores"]}, {"cores_shared_by", set.shared_by()}};
}

// No process is known yet, or any more, of a rank or worker whose number is 0.
Json PidToJson(int64_t pid) { return pid == 0 ? Json(nullptr) : Json(pid); }

Json FailureToJson(bool has, const v1::Failure& failure) {
  return has ? MessageToJson(failure) : Json(nullptr);
}

// A loss may be no finite number, for which JSON has no word: it is a text then.
Json LossToJson(const v1::Job& job) {
  return job.has_loss() ? Json::parse(ExactNumber(job.loss())) : Json(nullptr);
}

}  // namespace

std::string StateText(v1::JobState state) { return EnumText(*v1::JobState_descriptor(), state); }

std::string StateText(const v1::Job& job) {
  return job.moving().empty() ? StateText(job.state()) : kMovingState;
}

bool IsEndState(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

Json JobSummaryToJson(const v1::Job& job) {
  Json json = MessageToJson(job, {"name", "state", "step", "steps"});
  json["loss"] = LossToJson(job);
  json.update(MessageToJson(job, {"group_epoch", "restarts"}));
  if (!job.waiting_for().empty()) json["waiting_for"] = job.waiting_for();
  if (!job.moving().empty()) json["moving"] = job.moving();
  return json;
}

Json CheckpointToJson(const v1::CheckpointRecord& checkpoint) {
  Json json = MessageToJson(
      checkpoint, {"path", "step", "layout", "bytes", "digest", "state", "attempt", "group_epoch",
                   "pinned", "verified", "duration_seconds", "commit_wall_time_ns"});
  if (!checkpoint.reason().empty()) json["reason"] = checkpoint.reason();
  if (!checkpoint.doubted_by().empty()) {
    json.update(MessageToJson(checkpoint, {"doubted_by", "doubt"}));
  }
  return json;
}

Json JobToJson(const v1::Job& job) {
  Json json = MessageToJson(job, {"name", "state", "step", "steps"});
  json["loss"] = LossToJson(job);
  json.update(MessageToJson(job, {"layout", "submitted_layout"}));
  Json ranks = Json::array();
  for (const auto& rank : job.ranks()) {
    Json entry = MessageToJson(rank, {"rank", "worker", "device"});
    entry["pid"] = PidToJson(rank.pid());
    entry.update(CoresToJson(rank.cores()));
    entry.update(MessageToJson(rank, {"coordinates"}));
    ranks.push_back(std::move(entry));
  }
  json["ranks"] = std::move(ranks);
  json.update(MessageToJson(job.plan(), {"data"}));
  json.update(MessageToJson(job, {"group_epoch", "restarts", "moves"}));
  Json checkpoints = Json::array();
  for (const auto& checkpoint : job.checkpoints()) {
    if (checkpoint.state() == v1::CHECKPOINT_STATE_COMMITTED ||
        checkpoint.state() == v1::CHECKPOINT_STATE_QUARANTINED) {
      checkpoints.push_back(CheckpointToJson(checkpoint));
    }
  }
  json["checkpoints"] = std::move(checkpoints);
  json["failure"] = FailureToJson(job.has_failure(), job.failure());
  json["last_failure"] = FailureToJson(job.has_last_failure(), job.last_failure());
  json["waiting_for"] = job.waiting_for();
  json["moving"] = job.moving();
  json["plan_digest"] = job.plan().digest();
  json["create_wall_time_ns"] = job.create_wall_time_ns();
  json["creator"] = job.creator();
  return json;
}

Json ManifestToSummaryJson(const v1::CheckpointManifest& manifest, const std::string& path) {
  Json files = Json::array();
  int64_t bytes = 0;
  for (const auto& shard : manifest.shards()) {
    bytes += shard.bytes();
    Json tensors = Json::array();
    for (const auto& tensor : shard.tensors()) {
      tensors.push_back(
          MessageToJson(tensor, {"name", "dtype", "global_shape", "global_offset", "shape"}));
    }
    Json file = MessageToJson(shard, {"name", "rank", "bytes", "digest"});
    file["tensors"] = std::move(tensors);
    files.push_back(std::move(file));
  }
  Json json = {{"path", path}, {"job", manifest.job()}};
  json.update(MessageToJson(manifest.state(), {"step", "consumed_samples", "seed"}));
  json.update(MessageToJson(manifest, {"attempt", "group_epoch", "layout", "plan_digest"}));
  if (manifest.has_base()) json["base"] = MessageToJson(manifest.base());
  json["bytes"] = bytes;
  json["files"] = std::move(files);
  return json;
}

Json WorkerToJson(const v1::WorkerStatus& worker) {
  Json devices = Json::array();
  for (const auto& device : worker.devices()) {
    Json entry = MessageToJson(device, {"index"});
    entry.update(MessageToJson(device.kind()));
    entry.update(MessageToJson(device, {"memory_bytes", "cores", "id", "condemned",
                                        "peak_flops_float32", "peak_flops_bfloat16"}));
    devices.push_back(std::move(entry));
  }
  Json ranks = Json::array();
  for (const auto& rank : worker.ranks()) {
    Json entry = MessageToJson(rank, {"job", "rank"});
    entry.update(CoresToJson(rank.cores()));
    ranks.push_back(std::move(entry));
  }
  Json json = MessageToJson(worker, {"name", "state", "incarnation"});
  json["pid"] = PidToJson(worker.pid());
  json.update(MessageToJson(worker, {"host", "island"}));
  json["devices"] = std::move(devices);
  json["metrics"] = worker.metrics_address();
  json.update(MessageToJson(worker, {"memory_bytes", "jobs"}));
  json["ranks"] = std::move(ranks);
  json.update(MessageToJson(worker, {"set_aside"}));
  if (worker.has_drain()) json["drain"] = MessageToJson(worker.drain());
  return json;
}

std::string SetAsideText(const v1::SetAside& part) {
  const auto text = [](int64_t wall_time_ns) { return UtcText(wall_time_ns / 1'000'000'000); };
  const std::string next =
      part.burning_in() ? std::string("burn-in is running")
                        : fmt::format("burn-in starts at {}", text(part.burn_in_wall_time_ns()));
  return fmt::format("{}set aside since {}, {}: {}",
                     part.has_device() ? fmt::format("device {} ", part.device()) : "",
                     text(part.since_wall_time_ns()), next, part.reason());
}

std::string ExactNumber(double value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return fmt::format("{:.17g}", value);
}

namespace {

// Returns the JSON of a number or flag of `step`, or an empty text if the line leaves it out.
std::string FigureText(const v1::StepEvent& step, const google::protobuf::FieldDescriptor* field) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *step.GetReflection();
  if (field->has_presence() && !reflection.HasField(step, field)) {
    return field->number() == v1::StepEvent::kMfuFieldNumber ? "null" : "";
  }
  switch (field->cpp_type()) {
    case Field::CPPTYPE_DOUBLE:
      return ExactNumber(reflection.GetDouble(step, field));
    case Field::CPPTYPE_INT64:
      return fmt::to_string(reflection.GetInt64(step, field));
    case Field::CPPTYPE_UINT64:
      return fmt::to_string(reflection.GetUInt64(step, field));
    case Field::CPPTYPE_BOOL:
      return reflection.GetBool(step, field) ? "true" : "";
    default:
      TROUPE_CHECK(false, "StepEvent.{} is neither a number nor a flag", field->name());
  }
}

}  // namespace

std::string StepToJsonLine(const v1::StepEvent& step) {
  std::string line = R"({"type":"step")";
  const google::protobuf::Descriptor& figures = *v1::StepEvent::descriptor();
  for (int i = 0; i < figures.field_count(); ++i) {
    if (figures.field(i)->is_repeated()) continue;  // the norms follow
    const std::string text = FigureText(step, figures.field(i));
    if (!text.empty()) line += fmt::format(R"(,"{}":{})", figures.field(i)->name(), text);
  }
  for (int i = 0; i < step.norms_size(); ++i) {
    const v1::BlockNorm& norm = step.norms(i);
    line +=
        fmt::format(R"({}{}:{{"gradient":{},"parameter":{}}}{})", i == 0 ? R"(,"norms":{)" : ",",
                    Dump(norm.block()), ExactNumber(norm.gradient()), ExactNumber(norm.parameter()),
                    i + 1 == step.norms_size() ? "}" : "");
  }
  return line + "}";
}

std::string EventToJsonLine(const v1::JobEvent& event) {
  Json json = {{"type", "event"}};
  json.update(MessageToJson(event));
  return Dump(json);
}

std::string EndToJsonLine(v1::JobState state) {
  return Dump({{"type", "end"}, {"state", StateText(state)}});
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace troupe
