#include "kernels/xla/compile/stage_compiler.h"

#include <set>
#include <utility>

#include "kernels/xla/compile/stage_modules.h"
#include "kernels/xla/pjrt/compile_options.h"
#include "kernels/xla/pjrt/plugin_path.h"

namespace troupe::kernels::xla {

StatusOr<StageCompiler> StageCompiler::Make(const std::string& topology,
                                            const std::string& device_model,
                                            std::span<const std::string> options) {
  TROUPE_ASSIGN_OR_RETURN(const std::string path, FindLibtpu());
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Topology> made, Topology::Make(path, topology));
  const std::string& kind = made->devices().front().kind;
  if (kind != device_model) {
    return FailedPrecondition("{} calls the devices of {} \"{}\", not \"{}\"", path, topology, kind,
                              device_model);
  }
  return StageCompiler(std::move(made), ParseOptionTexts(options));
}

StatusOr<CompiledStage> StageCompiler::Compile(
    std::vector<const model::Program*> of_ranks, std::span<const int> devices,
    const model::MemoryPlan& plan, const StepUse& use,
    const std::function<void(const std::string&)>& begin_program) {
  TROUPE_ASSIGN_OR_RETURN(const StagePrograms ranks, StagePrograms::Make(std::move(of_ranks)));
  TROUPE_ASSIGN_OR_RETURN(StageModules modules, WriteStagePrograms(ranks, plan, use));
  CompiledStage stage;
  stage.values_bytes = modules.kept_bytes;
  std::set<std::string> loaded;
  for (StageProgram& of : modules.programs) {
    std::pair key(std::vector(devices.begin(), devices.end()), of.module);
    auto found = compiled_.find(key);
    if (found == compiled_.end()) {
      begin_program(of.name);
      StatusOr<CompiledProgram> made = topology_->Compile(of.module, options_, devices);
      if (!made.ok()) return Annotate(made.status(), "compile " + of.name);
      found = compiled_.emplace(std::move(key), *std::move(made)).first;
    }
    const CompiledMemory& memory = found->second.memory;
    for (const auto& [kind, count] : found->second.collectives) {
      if (of.runs_in_step) stage.collectives[kind] += count;
    }
    if (loaded.insert(std::move(of.module)).second) {
      ++stage.programs;
      stage.code_bytes += memory.code;
    }
    const int64_t padding = memory.arguments + memory.results - memory.aliased - of.argument_bytes -
                            of.new_result_bytes;
    if (of.piece_bytes + padding + memory.temporary <=
        stage.piece_bytes + stage.padding_bytes + stage.temporary_bytes) {
      continue;
    }
    stage.fullest = of.name;
    stage.piece_bytes = of.piece_bytes;
    stage.padding_bytes = padding;
    stage.temporary_bytes = memory.temporary;
  }
  return stage;
}

}  // namespace troupe::kernels::xla
