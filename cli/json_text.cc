#include "cli/json_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <string_view>

namespace troupe {
namespace {

constexpr std::string_view kJobPrefix = "jobs/";

std::string WithoutPrefix(const std::string& name, std::string_view prefix) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

template <typename Grid>
Json GridToJson(const Grid& grid) {
  return {{"pipe", grid.pipe()},
          {"data_replicate", grid.data_replicate()},
          {"data_shard", grid.data_shard()},
          {"context", grid.context()},
          {"expert", grid.expert()},
          {"tensor", grid.tensor()}};
}

Json FailureToJson(const v1::Failure& failure) {
  return {{"cause", failure.cause()},
          {"message", failure.message()},
          {"rank", failure.rank()},
          {"worker", failure.worker()},
          {"exit_code", failure.exit_code()},
          {"signal", failure.signal()},
          {"last_operation", failure.last_operation()}};
}

}  // namespace

std::string StateText(v1::JobState state) {
  return WithoutPrefix(v1::JobState_Name(state), "JOB_STATE_");
}

std::string JobId(const std::string& name) {
  return name.starts_with(kJobPrefix) ? name.substr(kJobPrefix.size()) : name;
}

std::string JobName(const std::string& id_or_name) {
  return std::string(kJobPrefix) + JobId(id_or_name);
}

Json JobSummaryToJson(const v1::Job& job) {
  Json json = {{"name", job.name()},
               {"state", StateText(job.state())},
               {"step", job.step()},
               {"steps", job.steps()},
               {"group_epoch", job.group_epoch()},
               {"restarts", job.restarts()}};
  if (!job.waiting_for().empty()) json["waiting_for"] = job.waiting_for();
  return json;
}

Json CheckpointToJson(const v1::CheckpointRecord& checkpoint) {
  Json json = {{"path", checkpoint.path()},
               {"step", checkpoint.step()},
               {"layout", GridToJson(checkpoint.layout())},
               {"bytes", checkpoint.bytes()},
               {"digest", checkpoint.digest()},
               {"state", WithoutPrefix(
                             v1::CheckpointState_Name(checkpoint.state()), "CHECKPOINT_STATE_")},
               {"attempt", checkpoint.attempt()},
               {"group_epoch", checkpoint.group_epoch()},
               {"pinned", checkpoint.pinned()},
               {"verified", checkpoint.verified()},
               {"duration_seconds", checkpoint.duration_seconds()},
               {"commit_wall_time_ns", checkpoint.commit_wall_time_ns()}};
  if (!checkpoint.reason().empty()) json["reason"] = checkpoint.reason();
  if (!checkpoint.doubted_by().empty()) {
    json["doubted_by"] = checkpoint.doubted_by();
    json["doubt"] = checkpoint.doubt();
  }
  return json;
}

namespace {

Json CoresToJson(const v1::CoreSet& set) {
  Json cores = Json::array();
  for (const int core : set.cores()) cores.push_back(core);
  return cores;
}

}  // namespace

Json JobToJson(const v1::Job& job) {
  Json json = {{"name", job.name()},
               {"state", StateText(job.state())},
               {"step", job.step()},
               {"steps", job.steps()},
               {"layout", GridToJson(job.layout())},
               {"submitted_layout", GridToJson(job.submitted_layout())}};
  Json ranks = Json::array();
  for (const auto& rank : job.ranks()) {
    ranks.push_back({{"rank", rank.rank()},
                     {"worker", rank.worker()},
                     {"device", rank.device()},
                     {"pid", rank.pid()},
                     {"cores", CoresToJson(rank.cores())},
                     {"cores_shared_by", rank.cores().shared_by()},
                     {"coordinates", GridToJson(rank.coordinates())}});
  }
  json["ranks"] = std::move(ranks);
  Json data = Json::array();
  for (const auto& entry : job.plan().data()) {
    data.push_back({{"path", entry.path()}, {"weight", entry.weight()}, {"share", entry.share()}});
  }
  json["data"] = std::move(data);
  json["group_epoch"] = job.group_epoch();
  json["restarts"] = job.restarts();
  Json checkpoints = Json::array();
  for (const auto& checkpoint : job.checkpoints()) {
    if (checkpoint.state() == v1::CHECKPOINT_STATE_COMMITTED ||
        checkpoint.state() == v1::CHECKPOINT_STATE_QUARANTINED) {
      checkpoints.push_back(CheckpointToJson(checkpoint));
    }
  }
  json["checkpoints"] = std::move(checkpoints);
  json["failure"] = job.has_failure() ? FailureToJson(job.failure()) : Json(nullptr);
  json["last_failure"] = job.has_last_failure() ? FailureToJson(job.last_failure()) : Json(nullptr);
  json["waiting_for"] = job.waiting_for();
  json["plan_digest"] = job.plan().digest();
  json["create_wall_time_ns"] = job.create_wall_time_ns();
  return json;
}

Json ManifestToSummaryJson(const v1::CheckpointManifest& manifest, const std::string& path) {
  Json files = Json::array();
  int64_t bytes = 0;
  for (const auto& shard : manifest.shards()) {
    bytes += shard.bytes();
    Json tensors = Json::array();
    for (const auto& tensor : shard.tensors()) {
      tensors.push_back({{"name", tensor.name()},
                         {"dtype", tensor.dtype()},
                         {"global_shape", Json(std::vector<int64_t>(tensor.global_shape().begin(),
                                                                   tensor.global_shape().end()))},
                         {"global_offset", Json(std::vector<int64_t>(tensor.global_offset().begin(),
                                                                    tensor.global_offset().end()))},
                         {"shape", Json(std::vector<int64_t>(tensor.shape().begin(),
                                                            tensor.shape().end()))}});
    }
    files.push_back({{"name", shard.name()},
                     {"rank", shard.rank()},
                     {"bytes", shard.bytes()},
                     {"digest", shard.digest()},
                     {"tensors", std::move(tensors)}});
  }
  return {{"path", path},
          {"job", manifest.job()},
          {"step", manifest.state().step()},
          {"consumed_samples", manifest.state().consumed_samples()},
          {"seed", manifest.state().seed()},
          {"attempt", manifest.attempt()},
          {"group_epoch", manifest.group_epoch()},
          {"layout", GridToJson(manifest.layout())},
          {"plan_digest", manifest.plan_digest()},
          {"bytes", bytes},
          {"files", std::move(files)}};
}

Json WorkerToJson(const v1::WorkerStatus& worker) {
  Json devices = Json::array();
  for (const auto& device : worker.devices()) {
    devices.push_back({{"index", device.index()},
                       {"kind", device.kind().kind()},
                       {"model", device.kind().model()},
                       {"kernel_level", device.kind().kernel_level()},
                       {"versions", device.kind().versions()},
                       {"nccl", device.kind().has_nccl() ? Json(device.kind().nccl()) : Json(nullptr)},
                       {"memory_bytes", device.memory_bytes()},
                       {"cores", device.cores()},
                       {"id", device.id()},
                       {"condemned", device.condemned()},
                       {"peak_flops_float32", device.peak_flops_float32()},
                       {"peak_flops_bfloat16", device.peak_flops_bfloat16()}});
  }
  Json jobs = Json::array();
  for (const auto& job : worker.jobs()) jobs.push_back(job);
  Json set_aside = Json::array();
  for (const auto& part : worker.set_aside()) {
    set_aside.push_back({{"device", part.has_device() ? Json(part.device()) : Json(nullptr)},
                         {"reason", part.reason()},
                         {"since_wall_time_ns", part.since_wall_time_ns()},
                         {"burn_in_wall_time_ns", part.burn_in_wall_time_ns()},
                         {"burning_in", part.burning_in()}});
  }
  Json ranks = Json::array();
  for (const auto& rank : worker.ranks()) {
    ranks.push_back({{"job", rank.job()},
                     {"rank", rank.rank()},
                     {"cores", CoresToJson(rank.cores())},
                     {"cores_shared_by", rank.cores().shared_by()}});
  }
  return {{"name", worker.name()},
          {"state", worker.state()},
          {"incarnation", worker.incarnation()},
          {"pid", worker.pid()},
          {"host", worker.host()},
          {"island", worker.island()},
          {"devices", std::move(devices)},
          {"metrics", worker.metrics_address()},
          {"memory_bytes", worker.memory_bytes()},
          {"jobs", std::move(jobs)},
          {"ranks", std::move(ranks)},
          {"set_aside", std::move(set_aside)}};
}

std::string SetAsideText(const v1::SetAside& part) {
  const auto text = [](int64_t wall_time_ns) {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                       fmt::gmtime(static_cast<std::time_t>(wall_time_ns / 1'000'000'000)));
  };
  const std::string next = part.burning_in()
                               ? std::string("is burnt in now")
                               : fmt::format("burn-in from {}", text(part.burn_in_wall_time_ns()));
  return fmt::format("{}set aside since {}, {}: {}",
                     part.has_device() ? fmt::format("device {} ", part.device()) : "",
                     text(part.since_wall_time_ns()), next, part.reason());
}

std::string ExactNumber(double value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return fmt::format("{:.17g}", value);
}

std::string StepToJsonLine(const v1::StepEvent& step) {
  std::string line = fmt::format(
      R"({{"type":"step","step":{},"loss":{},"grad_norm":{},"learning_rate":{},"tokens":{},)"
      R"("step_seconds":{},"tokens_per_second":{},"mfu":{},"group_epoch":{})",
      step.step(), ExactNumber(step.loss()), ExactNumber(step.grad_norm()),
      ExactNumber(step.learning_rate()), step.tokens(), ExactNumber(step.step_seconds()),
      ExactNumber(step.tokens_per_second()), step.has_mfu() ? ExactNumber(step.mfu()) : "null",
      step.group_epoch());
  if (step.has_validation_loss()) {
    line += fmt::format(R"(,"validation_loss":{})", ExactNumber(step.validation_loss()));
  }
  if (step.has_dropped_fraction()) {
    line += fmt::format(R"(,"dropped_fraction":{})", ExactNumber(step.dropped_fraction()));
  }
  if (step.skipped()) line += R"(,"skipped":true)";
  for (int i = 0; i < step.norms_size(); ++i) {
    const v1::BlockNorm& norm = step.norms(i);
    line += fmt::format(R"({}{}:{{"gradient":{},"parameter":{}}}{})", i == 0 ? R"(,"norms":{)" : ",",
                        Dump(norm.block()), ExactNumber(norm.gradient()),
                        ExactNumber(norm.parameter()), i + 1 == step.norms_size() ? "}" : "");
  }
  return line + "}";
}

std::string EventToJsonLine(const v1::JobEvent& event) {
  return Dump({{"type", "event"},
               {"event", event.event()},
               {"message", event.message()},
               {"step", event.step()},
               {"group_epoch", event.group_epoch()},
               {"wall_time_ns", event.wall_time_ns()},
               {"state", StateText(event.state())},
               {"count", event.count()}});
}

std::string EndToJsonLine(v1::JobState state) {
  return Dump({{"type", "end"}, {"state", StateText(state)}});
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace troupe
