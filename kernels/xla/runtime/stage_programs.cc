#include "kernels/xla/runtime/stage_programs.h"

#include <set>
#include <utility>

#include "kernels/backend/op_sequence.h"

namespace troupe::kernels::xla {
namespace {

using model::Op;
using model::OpKind;
using model::Program;
using model::ValueId;

// Whether the operation runs between compiled programs.
bool CutsPrograms(const Program& program, const Op& op) {
  if (op.kind == OpKind::kWait) return true;
  if (op.kind == OpKind::kControlReduce) {
    return GroupSize(program.mesh, {model::CollectiveGroup::Kind::kAll, 0}) > 1;
  }
  return model::RulesOf(op.kind).collective.has_value() &&
         GroupSize(program.mesh, model::CollectiveOf(op).group) > 1;
}

int64_t BytesOf(const Program& program, const std::set<ValueId>& roots) {
  int64_t bytes = 0;
  for (const ValueId root : roots) bytes += program.value(root).bytes();
  return bytes;
}

// Writes the programs of one list of operations after the other.
class StageWriter {
 public:
  StageWriter(const Program& program, const model::MemoryPlan& plan)
      : program_(program), plan_(plan) {}

  Status Add(const std::string& piece, const std::vector<Op>& ops) {
    std::set<ValueId> alive;
    for (size_t begin = 0; begin < ops.size();) {
      const bool cuts = CutsPrograms(program_, ops[begin]);
      size_t end = begin + 1;
      while (!cuts && end < ops.size() && !CutsPrograms(program_, ops[end])) ++end;
      const OpRange range{ops, begin, end};
      if (cuts) {
        AddTemporaries(ops[begin].outputs, &alive);
      } else {
        TROUPE_RETURN_IF_ERROR(AddProgram(piece, range, &alive));
      }
      for (const ValueId root : DeadAfter(program_, plan_, range)) alive.erase(root);
      begin = end;
    }
    return OkStatus();
  }

  std::vector<StageProgram> Finish() { return std::move(programs_); }

 private:
  // Adds the roots of those of `values` that are temporary.
  void AddTemporaries(const std::vector<ValueId>& values, std::set<ValueId>* roots) const {
    for (const ValueId value : values) {
      int64_t offset = 0;
      const ValueId root = RootOf(program_, value, &offset);
      if (plan_.locations[root].region == model::Region::kTemporary) roots->insert(root);
    }
  }

  Status AddProgram(const std::string& piece, const OpRange& range, std::set<ValueId>* alive) {
    TROUPE_ASSIGN_OR_RETURN(SegmentText text, WriteSegment(program_, plan_, range));
    AddTemporaries(text.results, alive);
    if (text.module.empty()) return OkStatus();
    StageProgram& added = programs_.emplace_back();
    added.name = piece + ", " + OperationName(program_, range.ops[range.begin]);
    if (range.end > range.begin + 1)
      added.name += " to " + OperationName(program_, range.ops[range.end - 1]);
    for (const ValueId root : text.arguments) added.argument_bytes += program_.value(root).bytes();
    if (text.reads_first_microbatch) added.argument_bytes += sizeof(int32_t);
    for (size_t r = 0; r < text.results.size(); ++r) {
      if (text.aliases[r] < 0) added.new_result_bytes += program_.value(text.results[r]).bytes();
    }
    added.piece_bytes = BytesOf(program_, *alive);
    added.module = std::move(text.module);
    return OkStatus();
  }

  const Program& program_;
  const model::MemoryPlan& plan_;
  std::vector<StageProgram> programs_;
};

}  // namespace

StatusOr<std::vector<StageProgram>> WriteStagePrograms(const Program& program,
                                                       const model::MemoryPlan& plan) {
  StageWriter writer(program, plan);
  for (size_t chunk = 0; chunk < program.ops.size(); ++chunk) {
    for (size_t index = 0; index < program.ops[chunk].size(); ++index) {
      const auto piece = static_cast<model::Piece>(index);
      if (!RunsInSchedule(piece, plan)) continue;
      TROUPE_RETURN_IF_ERROR(
          writer.Add(fmt::format("chunk {} {}", program.chunks[chunk].chunk, Name(piece)),
                     program.ops[chunk][index]));
    }
  }
  TROUPE_RETURN_IF_ERROR(writer.Add("update", program.update));
  TROUPE_RETURN_IF_ERROR(writer.Add("initialize", program.initialize));
  return writer.Finish();
}

}  // namespace troupe::kernels::xla
