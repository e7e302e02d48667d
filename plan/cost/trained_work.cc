#include "plan/cost/trained_work.h"

#include "model/build.h"
#include "model/cost.h"

namespace troupe {

StatusOr<TrainedWork> TrainedWorkOf(const model::ModelConfig& model,
                                    const model::TrainedParameters& trained, int64_t tokens) {
  model::BuildOptions options;
  options.model = model;
  options.trained = trained;
  options.chunks = {{.block_count = model.num_blocks(), .has_embedding = true, .has_head = true}};
  options.sequence_length = options.head_rows = tokens;
  options.overlap = options.fuse = options.runs = false;
  TROUPE_ASSIGN_OR_RETURN(const model::Program program, model::BuildProgram(options));
  TrainedWork work;
  for (const model::ParameterEntry& entry : program.parameters) {
    if (entry.trained()) work.parameters += program.value(entry.value).elements();
    work.freezes |= !entry.trained();
  }
  work.flops = model::ModelFlops(program, 0).total();
  for (const model::Piece piece : {model::Piece::kForward, model::Piece::kBackward}) {
    for (const model::Op& op : program.Ops(0, piece)) {
      if (op.kind == model::OpKind::kAttention || op.kind == model::OpKind::kAttentionGrad)
        work.attention_flops += model::ModelFlops(op, program);
    }
  }
  return work;
}

}  // namespace troupe
