#include "model/blocks/embedding.h"

#include "model/blocks/parameters.h"

namespace troupe::model {

ValueId BuildEmbedding(ProgramBuilder& builder, const ModelConfig& config, ValueId tokens,
                       ValueId table, const DropoutPolicy& dropout) {
  const ValueId partial = builder.Emit(OpKind::kEmbedding, VocabularySlice(builder, config),
                                       {tokens, table}, "embedding.partial");
  return Drop(builder, dropout, "embedding", builder.ReduceRows(partial, "embedding.output"));
}

}  // namespace troupe::model
