#include "plan/text/plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/cost/overlapped_pairs.h"
#include "plan/job/message_json.h"
#include "plan/text/scaled.h"
#include "plan/validate/read_channels.h"

namespace troupe {
namespace {

constexpr int kMostRanksListed = 8;
constexpr int kMostActionsListed = 40;

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

template <typename Grid>
std::string GridToText(const Grid& grid) {
  return fmt::format(
      "pipe {} × data_replicate {} × data_shard {} × context {} × expert {} × tensor {}",
      grid.pipe(), grid.data_replicate(), grid.data_shard(), grid.context(), grid.expert(),
      grid.tensor());
}

// ", of which 1.2 MB across islands"; empty where islands are not known.
std::string AcrossText(const v1::AxisTraffic& entry) {
  if (!entry.has_across_islands_bytes_per_step()) return "";
  const double across = entry.across_islands_bytes_per_step();
  if (across == 0) return ", within islands";
  if (across == entry.bytes_per_step()) return ", across islands";
  return fmt::format(", of which {} across islands", Scaled(across, "B"));
}

std::string FiguresText(const v1::Plan& plan, const StepTime* time) {
  std::string text =
      fmt::format("mesh: {} ranks = {}\n", plan.ranks_size(), GridToText(plan.mesh()));
  text += fmt::format("model: {} parameters, {} per step\n", plan.parameters(),
                      Scaled(plan.model_flops_per_step(), "FLOP"));
  if (time != nullptr) {
    text += fmt::format(
        "estimate: {:.4g} s per step, MFU {:.1f}%; the busiest rank computes {:.4g} s and "
        "communicates {:.4g} s; bubble {:.1f}%\n",
        time->seconds, 100 * time->mfu, time->compute_seconds, time->communication_seconds,
        100 * time->bubble_ratio);
  }
  if (plan.recomputed_flops_per_step() > 0) {
    text += fmt::format("activation recomputation: {} more per step\n",
                        Scaled(plan.recomputed_flops_per_step(), "FLOP"));
  }
  for (const auto& entry : plan.data()) {
    text +=
        fmt::format("data: {:.4g}% of the samples from {}\n", 100 * entry.share(), entry.path());
  }
  if (plan.has_samples()) text += fmt::format("samples: {}\n", ToText(plan.samples()));
  return text;
}

std::string StagesText(const v1::Plan& plan) {
  std::string text = "\nstages:\n";
  for (const auto& chunk : plan.chunks()) {
    text +=
        fmt::format("  stage {} chunk {}: {}{}{} from block {}: {} parameters, {} per forward",
                    chunk.pipe_rank(), chunk.chunk(), chunk.has_embedding() ? "embedding + " : "",
                    chunk.blocks(), chunk.has_head() ? " + head" : "", chunk.first_block(),
                    chunk.parameters(), Scaled(chunk.forward_flops(), "FLOP"));
    if (chunk.pipe_rank() < plan.memory_size()) {
      const double bytes = static_cast<double>(plan.memory(chunk.pipe_rank()).total_bytes());
      text += fmt::format(", {} per rank", Scaled(bytes, "B"));
    }
    text += '\n';
  }
  text += fmt::format("  imbalance: heaviest / mean = {:.3f}\n", plan.imbalance());
  return text;
}

std::string MemoryText(const v1::Plan& plan) {
  std::string text = "\nmemory per rank:\n";
  for (int rank = 0; rank < plan.memory_size(); ++rank) {
    const auto& memory = plan.memory(rank);
    const auto part = [](int64_t bytes) { return Scaled(static_cast<double>(bytes), "B"); };
    text += fmt::format(
        "  stage {}: parameters {}, compute copies {}, gradients {}, optimizer {}, saved {}, "
        "temporary {}, ",
        rank, part(memory.parameter_bytes()), part(memory.compute_copy_bytes()),
        part(memory.gradient_bytes()), part(memory.optimizer_bytes()), part(memory.saved_bytes()),
        part(memory.temporary_bytes()));
    text += HasOwnMemory(memory)
                ? fmt::format("scratch {}, reserve {}; pinned on the host: snapshot {}\n",
                              part(memory.scratch_bytes()), part(memory.reserve_bytes()),
                              part(memory.host_bytes()))
                : fmt::format("snapshot {}, scratch {} for {} {}\n", part(memory.snapshot_bytes()),
                              part(memory.scratch_bytes()), memory.threads(),
                              memory.threads() == 1 ? "thread" : "threads");
    for (const auto& line : memory.peak()) text += fmt::format("    {}\n", line);
    if (!memory.has_compiled_bytes()) continue;
    text += fmt::format("    total {} by the plan, {} by the compiler\n",
                        part(memory.total_bytes()), part(memory.compiled_bytes()));
    for (const auto& line : memory.compiled()) text += fmt::format("    {}\n", line);
  }
  return text;
}

std::string TrafficText(const v1::Plan& plan) {
  std::string text = "\nbytes sent by one rank per step:\n";
  for (const auto& entry : plan.traffic()) {
    text += fmt::format("  {} ({}): {}{}\n", entry.axis(), entry.purpose(),
                        Scaled(entry.bytes_per_step(), "B"), AcrossText(entry));
  }
  if (plan.traffic_size() == 0) text += "  none\n";
  if (plan.tensor_parallel_parts() > 1) {
    text += fmt::format(
        "  rows are exchanged between tensor ranks in {} parts, one part while a matmul computes "
        "another\n",
        plan.tensor_parallel_parts());
  }
  for (const auto& line : plan.tensor_parts_choice()) text += fmt::format("    {}\n", line);
  return text;
}

std::string ScheduleText(const v1::Plan& plan) {
  std::string text =
      fmt::format("\nschedule: {}, {} microbatches, bubble {:.1f}%\n", plan.schedule().name(),
                  plan.schedule().microbatches(), 100 * plan.schedule().bubble_ratio());
  if (const std::string line = PairsLine(plan); !line.empty()) text += fmt::format("  {}\n", line);
  for (const auto& line : plan.schedule_choice()) text += fmt::format("  {}\n", line);
  for (int rank = 0; rank < plan.schedule().ranks_size(); ++rank) {
    const auto& actions = plan.schedule().ranks(rank).actions();
    text += fmt::format("  stage {} (peak {} in flight):", rank,
                        plan.schedule().ranks(rank).peak_live_activations());
    for (int i = 0; i < std::min(actions.size(), kMostActionsListed); ++i) text += " " + actions[i];
    if (actions.size() > kMostActionsListed) {
      text += fmt::format(" … {} more", actions.size() - kMostActionsListed);
    }
    text += '\n';
  }
  return text;
}

std::string RanksText(const v1::Plan& plan) {
  std::string text = "\nranks:\n";
  for (int i = 0; i < std::min(plan.ranks_size(), kMostRanksListed); ++i) {
    const auto& rank = plan.ranks(i);
    const auto& at = rank.coordinates();
    text += fmt::format(
        "  {}: pipe {} data_replicate {} data_shard {} context {} expert {} tensor {}", rank.rank(),
        at.pipe(), at.data_replicate(), at.data_shard(), at.context(), at.expert(), at.tensor());
    if (!rank.worker().empty()) {
      text += fmt::format(" on {} device {} ({})", rank.worker(), rank.device(), rank.island());
    }
    if (rank.has_slice_process()) {
      text += fmt::format(", process {} of a slice of {} chips", rank.slice_process().task(),
                          fmt::join(rank.slice_process().bounds(), "x"));
    }
    text += '\n';
  }
  if (plan.ranks_size() > kMostRanksListed) {
    text +=
        fmt::format("  … and {} more (-o json lists all)\n", plan.ranks_size() - kMostRanksListed);
  }
  return text;
}

// A titled list of `lines`; empty where there are none.
template <typename Lines>
std::string SectionText(const char* title, const Lines& lines) {
  if (lines.empty()) return "";
  std::string text = fmt::format("\n{}:\n", title);
  for (const auto& line : lines) text += fmt::format("  {}\n", line);
  return text;
}

}  // namespace

std::string PlanToJson(const v1::Plan& plan, const StepTime* time) {
  Json json = MessageToJson(plan, {"mesh"});
  json["ranks"] = RanksToJson(plan);
  json["stages"] = StagesToJson(plan);
  json.update(MessageToJson(
      plan, {"imbalance", "parameters", "model_flops_per_step", "recomputed_flops_per_step"}));
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

std::string PlanToText(const v1::Plan& plan, const StepTime* time, const std::string& fault_cost) {
  return FiguresText(plan, time) + StagesText(plan) + MemoryText(plan) + TrafficText(plan) +
         ScheduleText(plan) + RanksText(plan) + SectionText("owners", plan.ownership()) +
         SectionText("what each axis leaves unsharded", plan.cannot_fix()) +
         (fault_cost.empty() ? "" : fmt::format("\ncheckpoints: {}\n", fault_cost)) +
         SectionText("options of the devices' compiler", plan.compiler_options()) +
         SectionText("warnings", plan.warnings());
}

}  // namespace troupe
