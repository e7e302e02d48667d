#include "model/blocks/dropout.h"

#include "base/random.h"
#include "base/sample_schema.h"

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
    dropout.own = builder.OwnRows();
  }
  return builder.Emit(OpKind::kDropout, dropout, {x, builder.chunk().Input(channels::kSlots)},
                      builder.program().value(x).name + ".dropped");
}

}  // namespace troupe::model
