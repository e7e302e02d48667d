// The token embedding, vocabulary-parallel over tensor: the rows of each rank are Partial(sum) and
// then reduced.
#ifndef TROUPE_MODEL_BLOCKS_EMBEDDING_H_
#define TROUPE_MODEL_BLOCKS_EMBEDDING_H_

#include "model/blocks/config.h"
#include "model/blocks/dropout.h"
#include "model/program/builder.h"

namespace troupe::model {

// tokens: i[R]; table: the unsharded [V,H] of AddVocabularyTable. Returns c[R,H], after dropout.
ValueId BuildEmbedding(ProgramBuilder& builder, const ModelConfig& config, ValueId tokens,
                       ValueId table, const DropoutPolicy& dropout);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_EMBEDDING_H_
