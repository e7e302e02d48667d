#include "model/blocks/dropout.h"

#include "base/random.h"

namespace troupe::model {

ValueId Drop(ProgramBuilder& builder, const DropoutPolicy& policy, const std::string& where,
             ValueId x) {
  if (policy.probability == 0 || !builder.status().ok()) return x;
  DropoutAttributes dropout = {.probability = policy.probability,
                               .key = RandomKey(policy.seed, "dropout/" + where),
                               .tokens = policy.tokens};
  dropout.held = ContextRows::Of(policy.tokens, builder.context_degree(),
                                 builder.mesh().coordinates[Axis::kContext]);
  if (builder.shards_rows_over_tensor()) {
    dropout.first_row = builder.TensorRange(builder.sequence_rows()).begin;
  }
  return builder.Emit(OpKind::kDropout, dropout, {x, builder.chunk().samples},
                      builder.program().value(x).name + ".dropped");
}

}  // namespace troupe::model
