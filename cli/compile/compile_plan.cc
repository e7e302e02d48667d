#include "cli/compile/compile_plan.h"

#include <cmath>
#include <string>
#include <vector>

#include "kernels/xla/compile/stage_compiler.h"
#include "model/program/memory_plan.h"
#include "plan/cost/stage_cost.h"
#include "plan/device/tpu_model.h"
#include "plan/device/tpu_slice.h"
#include "plan/text/scaled.h"
#include "plan/validate/stage_inputs.h"

namespace troupe {
namespace {

using kernels::xla::CompiledStage;
using kernels::xla::StageCompiler;

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
  TROUPE_ASSIGN_OR_RETURN(const TpuModel* const model, ModelOf(*plan));
  TROUPE_ASSIGN_OR_RETURN(const std::string slice, SliceFor(*model, plan->ranks_size()));
  const std::string topology = fmt::format("{}:{}", model->generation, slice);
  const std::vector<std::string> options(plan->compiler_options().begin(),
                                         plan->compiler_options().end());
  TROUPE_ASSIGN_OR_RETURN(StageCompiler compiler,
                          StageCompiler::Make(topology, std::string(model->model), options));
  const std::string text = fmt::format("{} for {}", compiler.plugin().platform_version, topology);
  for (int pipe_rank = 0; pipe_rank < plan->memory_size(); ++pipe_rank) {
    TROUPE_ASSIGN_OR_RETURN(const model::Program program, BuildStage(spec, *plan, pipe_rank));
    TROUPE_ASSIGN_OR_RETURN(const LiveMicrobatches live, CountLiveMicrobatches(*plan, pipe_rank));
    const model::MemoryPlan memory =
        model::PlanMemory(program, live.of_chunk, live.split_backward, /*threads=*/1);
    const auto compiled = compiler.Compile({&program}, memory, begin_program);
    if (!compiled.ok())
      return Annotate(compiled.status(), fmt::format("stage {} on {}", pipe_rank, topology));
    AddTexts(*compiled, text, plan->mutable_memory(pipe_rank));
  }
  return OkStatus();
}

}  // namespace troupe
