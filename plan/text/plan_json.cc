#include "plan/text/plan_json.h"

#include <utility>

#include "plan/job/message_json.h"

namespace troupe {
namespace {

// Whether the rank's device has memory of its own: no other has a reserve.
bool HasOwnMemory(const v1::RankMemory& memory) { return memory.reserve_bytes() > 0; }

Json MemoryToJson(const v1::RankMemory& memory) {
  Json json =
      MessageToJson(memory, {"parameter_bytes", "compute_copy_bytes", "gradient_bytes",
                             "optimizer_bytes", "saved_bytes", "temporary_bytes", "scratch_bytes",
                             "snapshot_bytes", "total_bytes", "threads", "peak"});
  if (HasOwnMemory(memory)) json.update(MessageToJson(memory, {"reserve_bytes", "host_bytes"}));
  if (memory.has_compiled_bytes()) {
    json.update(MessageToJson(
        memory, {"compiled_bytes", "compiled_work_bytes", "compiled_collectives", "compiled"}));
  }
  return json;
}

Json ScheduleToJson(const v1::Plan& plan) {
  Json peaks = Json::array();
  Json actions = Json::array();
  for (const auto& rank : plan.schedule().ranks()) {
    peaks.push_back(rank.peak_live_activations());
    actions.push_back(MessageToJson(rank)["actions"]);
  }
  Json stages = Json::array();
  for (int rank = 0; rank < plan.mesh().pipe(); ++rank) {
    Json chunks = Json::array();
    for (const auto& chunk : plan.chunks()) {
      if (chunk.pipe_rank() == rank) chunks.push_back(chunk.chunk());
    }
    stages.push_back(std::move(chunks));
  }
  Json json =
      MessageToJson(plan.schedule(), {"name", "microbatches", "bubble_ratio", "interleaves_pairs"});
  json["peak_live_activations"] = std::move(peaks);
  json["stages"] = std::move(stages);
  json["ranks"] = std::move(actions);
  json["choice"] = MessageToJson(plan, {"schedule_choice"})["schedule_choice"];
  return json;
}

Json RanksToJson(const v1::Plan& plan) {
  Json ranks = Json::array();
  for (const auto& rank : plan.ranks()) {
    Json json = MessageToJson(rank, {"rank", "coordinates", "worker", "device", "island"});
    if (rank.has_slice_process()) json.update(MessageToJson(rank, {"slice_process"}));
    for (const char* unplaced : {"worker", "island"}) {
      if (json[unplaced] == "") json[unplaced] = nullptr;
    }
    ranks.push_back(std::move(json));
  }
  return ranks;
}

Json StagesToJson(const v1::Plan& plan) {
  Json stages = Json::array();
  for (const auto& chunk : plan.chunks()) {
    Json stage = MessageToJson(chunk, {"chunk", "pipe_rank", "first_block", "blocks",
                                       "has_embedding", "has_head", "parameters", "forward_flops"});
    if (chunk.pipe_rank() < plan.memory_size()) {
      stage["memory"] = MemoryToJson(plan.memory(chunk.pipe_rank()));
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

Json TrafficToJson(const v1::Plan& plan) {
  Json traffic = Json::array();
  for (const auto& entry : plan.traffic()) {
    const bool known = entry.has_across_islands_bytes_per_step();
    const double across = entry.across_islands_bytes_per_step();
    Json json = MessageToJson(entry, {"axis", "purpose", "bytes_per_step"});
    json["within_islands_bytes_per_step"] =
        known ? Json(entry.bytes_per_step() - across) : Json(nullptr);
    json["across_islands_bytes_per_step"] = known ? Json(across) : Json(nullptr);
    traffic.push_back(std::move(json));
  }
  return traffic;
}

}  // namespace

std::string PlanToJson(const v1::Plan& plan, const StepTime* time) {
  Json json = MessageToJson(plan, {"mesh"});
  json["ranks"] = RanksToJson(plan);
  json["stages"] = StagesToJson(plan);
  json.update(MessageToJson(plan, {"imbalance", "parameters", "trained_parameters",
                                   "model_flops_per_step", "recomputed_flops_per_step"}));
  json["traffic"] = TrafficToJson(plan);
  json.update(MessageToJson(plan, {"replication", "tensor_parallel_parts", "tensor_parts_choice"}));
  json["schedule"] = ScheduleToJson(plan);
  json.update(MessageToJson(plan, {"data"}));
  json["samples"] = {{"schema_version", plan.samples().version()},
                     {"channels", MessageToJson(plan.samples())["channels"]}};
  json.update(MessageToJson(
      plan, {"threads_per_rank", "compiler_options", "cannot_fix", "ownership", "warnings"}));
  json["plan_digest"] = plan.digest();
  if (time != nullptr) {
    json["estimate"] = {{"step_seconds", time->seconds},
                        {"compute_seconds", time->compute_seconds},
                        {"communication_seconds", time->communication_seconds},
                        {"bubble_ratio", time->bubble_ratio},
                        {"mfu", time->mfu}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace troupe
