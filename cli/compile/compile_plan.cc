#include "cli/compile/compile_plan.h"

#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text/scaled.h"
#include "cli/compile/stage_slice.h"
#include "kernels/xla/compile/stage_compiler.h"
#include "model/build.h"
#include "model/program/memory_plan.h"
#include "plan/device/tpu_model.h"
#include "plan/validate/decoded_job.h"
#include "plan/validate/stage_inputs.h"

namespace troupe {
namespace {

using kernels::xla::CompiledStage;
using kernels::xla::StageCompiler;
using kernels::xla::StepUse;

// The planner's total and the compiler's may differ by this share of the compiler's.
constexpr double kAgreement = 0.1;

StatusOr<const TpuModel*> ModelOf(const v1::Plan& plan) {
  const TpuModel* const model = FindTpuModel(plan.device_profile().device_model());
  if (model != nullptr) return model;
  return InvalidArgument("device_model is {}: --compile needs the profile of a TPU",
                         plan.device_profile().has_device_model()
                             ? plan.device_profile().device_model()
                             : "absent from the device profile");
}

// The programs of a stage's ranks.
StatusOr<std::vector<model::Program>> ProgramsOf(const DecodedJob& job, const v1::Plan& plan,
                                                 int pipe_rank) {
  std::vector<model::Program> programs;
  for (const v1::RankPlacement& placement : plan.ranks()) {
    if (placement.coordinates().pipe() != pipe_rank) continue;
    TROUPE_ASSIGN_OR_RETURN(const model::BuildOptions options,
                            MakeStageBuildOptions(job, plan, placement.rank()));
    TROUPE_ASSIGN_OR_RETURN(model::Program program, model::BuildProgram(options));
    programs.push_back(std::move(program));
  }
  return programs;
}

// As a rank states it to its backend (worker/rank/xla_backend.cc).
StepUse UseOf(const v1::JobSpec& spec, const v1::Plan& plan) {
  return {.single_microbatch = plan.schedule().microbatches() == 1,
          .reads_gradients = spec.training().norms_interval() > 0};
}

void AddTexts(const CompiledStage& stage, const std::string& compiler, v1::RankMemory* memory) {
  const auto part = [](int64_t bytes) { return Scaled(static_cast<double>(bytes), "B"); };
  memory->set_compiled_bytes(stage.total_bytes());
  memory->add_compiled(fmt::format("{} programs by {}: values {}, code {}", stage.programs,
                                   compiler, part(stage.values_bytes), part(stage.code_bytes)));
  memory->add_compiled(fmt::format(
      "the fullest is {}: temporary values between programs {}, padding of its arguments and "
      "results {}, temporary {}",
      stage.fullest, part(stage.piece_bytes), part(stage.padding_bytes),
      part(stage.temporary_bytes)));
  memory->set_compiled_work_bytes(stage.total_bytes() - stage.code_bytes -
                                  memory->parameter_bytes() - memory->optimizer_bytes());
  std::vector<std::string> collectives;
  for (const auto& [kind, count] : stage.collectives) {
    v1::CollectiveCount& entry = *memory->add_compiled_collectives();
    entry.set_kind(kind);
    entry.set_count(count);
    collectives.push_back(fmt::format("{} {}", count, kind));
  }
  memory->add_compiled(
      fmt::format("collectives on the chips' links in a step of one microbatch: {}",
                  collectives.empty() ? "none" : fmt::format("{}", fmt::join(collectives, ", "))));
  const auto compiled = static_cast<double>(stage.total_bytes());
  const double more = (static_cast<double>(memory->total_bytes()) - compiled) / compiled;
  if (std::abs(more) <= kAgreement) return;
  memory->add_compiled(
      fmt::format("the plan's total is {:.0f}% {}: it cannot know which values the compiler fuses "
                  "away and which copies it adds",
                  100 * std::abs(more), more > 0 ? "more" : "less"));
}

}  // namespace

Status CompilePlan(const v1::JobSpec& spec,
                   const std::function<void(const std::string&)>& begin_program, v1::Plan* plan) {
  TROUPE_ASSIGN_OR_RETURN(const TpuModel* const tpu, ModelOf(*plan));
  TROUPE_ASSIGN_OR_RETURN(const DecodedJob job, DecodeJob(spec));
  const std::vector<std::string> options(plan->compiler_options().begin(),
                                         plan->compiler_options().end());
  std::map<std::string, StageCompiler> compilers;  // by topology
  for (int pipe_rank = 0; pipe_rank < plan->memory_size(); ++pipe_rank) {
    TROUPE_ASSIGN_OR_RETURN(const ChipsOfStage chips, FindChips(*plan, pipe_rank, *tpu));
    const std::string topology = TopologyOf(chips, *tpu);
    auto compiler = compilers.find(topology);
    if (compiler == compilers.end()) {
      TROUPE_ASSIGN_OR_RETURN(StageCompiler made,
                              StageCompiler::Make(topology, std::string(tpu->model), options));
      compiler = compilers.emplace(topology, std::move(made)).first;
    }
    TROUPE_ASSIGN_OR_RETURN(const std::vector<int> devices,
                            DevicesOf(chips, compiler->second.devices()));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<model::Program> of_ranks,
                            ProgramsOf(job, *plan, pipe_rank));
    std::vector<const model::Program*> programs;
    for (const model::Program& program : of_ranks) programs.push_back(&program);
    TROUPE_ASSIGN_OR_RETURN(const LiveMicrobatches live, CountLiveMicrobatches(*plan, pipe_rank));
    const model::MemoryPlan memory =
        model::PlanMemory(*programs[0], live.of_chunk, live.split_backward, /*threads=*/1);
    const auto compiled = compiler->second.Compile(std::move(programs), devices, memory,
                                                   UseOf(spec, *plan), begin_program);
    if (!compiled.ok())
      return Annotate(compiled.status(), fmt::format("stage {} on {}", pipe_rank, topology));
    AddTexts(*compiled,
             fmt::format("{} for {}", compiler->second.plugin().platform_version, topology),
             plan->mutable_memory(pipe_rank));
  }
  return OkStatus();
}

}  // namespace troupe
