#include "kernels/xla/compile/stage_modules.h"

#include <set>
#include <utility>

#include "kernels/backend/op_sequence.h"
#include "kernels/xla/runtime/segment.h"

namespace troupe::kernels::xla {
namespace {

using model::Op;
using model::OpKind;
using model::Program;
using model::ValueId;

// Whether the operation runs between compiled programs: its collective leaves the slice.
bool CutsPrograms(const StagePrograms& stage, const Op& op) {
  if (op.kind == OpKind::kWait) {
    const StageOp* const begun = stage.BegunBy(op);
    return begun != nullptr && CutsPrograms(stage, begun->any());
  }
  if (stage.IsWithin(op)) return false;
  const model::MeshView& mesh = stage.program(0).mesh;
  if (op.kind == OpKind::kControlReduce) {
    return GroupSize(mesh, {model::CollectiveGroup::Kind::kAll, 0}) > 1;
  }
  return model::RulesOf(op.kind).collective.has_value() &&
         GroupSize(mesh, model::CollectiveOf(op).group) > 1;
}

int64_t BytesOf(const Program& program, const std::set<ValueId>& roots) {
  int64_t bytes = 0;
  for (const ValueId root : roots) bytes += program.value(root).bytes();
  return bytes;
}

// Writes the programs of one list of operations after the other.
class StageWriter {
 public:
  StageWriter(const StagePrograms& stage, const model::MemoryPlan& plan)
      : stage_(stage), program_(stage.program(0)), plan_(plan) {}

  Status Add(const std::string& name, const StageOps& ops, const ValueUse& values) {
    std::set<ValueId> alive;
    for (size_t begin = 0; begin < ops.size();) {
      const bool cuts = CutsPrograms(stage_, ops[begin].any());
      size_t end = begin + 1;
      while (!cuts && end < ops.size() && !CutsPrograms(stage_, ops[end].any())) ++end;
      const OpRange range{ops, begin, end, /*evaluate=*/false, values};
      if (cuts) {
        AddTemporaries(ops[begin].any().outputs, values.inner, &alive);
      } else {
        TROUPE_RETURN_IF_ERROR(AddProgram(name, range, &alive));
      }
      for (const ValueId root : DeadAfter(stage_, plan_, range)) alive.erase(root);
      begin = end;
    }
    return OkStatus();
  }

  // Programs that are added from now on run before the first step.
  void EndStep() { in_step_ = false; }

  StageModules Finish() {
    StageModules modules;
    for (const ValueId root : kept_) {
      const model::Location& location = plan_.locations[root];
      const int copies =
          location.region == model::Region::kSaved ? plan_.buffers[location.chunk_index] : 1;
      modules.kept_bytes += program_.value(root).bytes() * copies;
    }
    modules.programs = std::move(programs_);
    return modules;
  }

 private:
  // Adds the roots of those of `values` that are temporary, or among `inner`.
  void AddTemporaries(const std::vector<ValueId>& values, const std::set<ValueId>& inner,
                      std::set<ValueId>* roots) const {
    for (const ValueId value : values) {
      int64_t offset = 0;
      const ValueId root = RootOf(program_, value, &offset);
      if (plan_.locations[root].region == model::Region::kTemporary || inner.contains(root))
        roots->insert(root);
    }
  }

  Status AddProgram(const std::string& name, const OpRange& range, std::set<ValueId>* alive) {
    TROUPE_ASSIGN_OR_RETURN(SegmentText text, WriteSegment(stage_, plan_, range));
    AddTemporaries(text.results, range.values.inner, alive);
    for (const std::vector<ValueId>* roots : {&text.arguments, &text.results}) {
      for (const ValueId root : *roots) {
        if (plan_.locations[root].region != model::Region::kTemporary &&
            !range.values.inner.contains(root))
          kept_.insert(root);
      }
    }
    if (text.module.empty()) return OkStatus();
    StageProgram& added = programs_.emplace_back();
    added.name = name + ", " + OperationName(program_, range.ops[range.begin].any());
    if (range.end > range.begin + 1)
      added.name += " to " + OperationName(program_, range.ops[range.end - 1].any());
    for (const ValueId root : text.arguments) added.argument_bytes += program_.value(root).bytes();
    if (text.reads_first_microbatch) added.argument_bytes += sizeof(int32_t);
    for (size_t r = 0; r < text.results.size(); ++r) {
      if (text.aliases[r] < 0) added.new_result_bytes += program_.value(text.results[r]).bytes();
    }
    added.piece_bytes = BytesOf(program_, *alive);
    added.runs_in_step = in_step_;
    added.module = std::move(text.module);
    return OkStatus();
  }

  const StagePrograms& stage_;
  const Program& program_;
  const model::MemoryPlan& plan_;
  std::vector<StageProgram> programs_;
  std::set<ValueId> kept_;
  bool in_step_ = true;
};

std::string NameOf(const PieceGroup& group, const Program& program) {
  const StepPiece &first = group.pieces.front(), &last = group.pieces.back();
  std::string name;
  if (first.chunk_index.has_value())
    name = fmt::format("chunk {} ", program.chunks[static_cast<size_t>(*first.chunk_index)].chunk);
  name += Name(first.piece);
  return group.pieces.size() == 1 ? name : fmt::format("{} to {}", name, Name(last.piece));
}

}  // namespace

StatusOr<StageModules> WriteStagePrograms(const StagePrograms& stage, const model::MemoryPlan& plan,
                                          const StepUse& use) {
  const StepGroups step = StepGroups::Make(
      stage, plan, use, [&stage](const Op& op) { return CutsPrograms(stage, op); });
  StageWriter writer(stage, plan);
  for (const PieceGroup& group : step.groups()) {
    TROUPE_RETURN_IF_ERROR(writer.Add(NameOf(group, stage.program(0)), group.ops, group.values));
  }
  writer.EndStep();
  TROUPE_RETURN_IF_ERROR(writer.Add("initialize", stage.initialize(), step.alone()));
  return writer.Finish();
}

}  // namespace troupe::kernels::xla
