// Dropout of a block's output before the residual and of the embedding.
#ifndef TROUPE_MODEL_BLOCKS_DROPOUT_H_
#define TROUPE_MODEL_BLOCKS_DROPOUT_H_

#include <cstdint>
#include <string>

#include "model/program/builder.h"

namespace troupe::model {

struct DropoutPolicy {
  double probability = 0;  // 0: none
  uint64_t seed = 0;
  int64_t tokens = 0;  // per whole sample
};

// Returns x c[R,H] (in the layout between matmuls) with some elements set to 0 and the others
// scaled, or x itself without dropout. `where` ("block3") names the value and, with the seed,
// determines the dropped elements. Values with the same `where` drop the same elements, so dropping
// two of them and adding is the same as dropping their sum. REQUIRES: the current chunk has the
// input `samples` if the probability is not 0.
ValueId Drop(ProgramBuilder& builder, const DropoutPolicy& policy, const std::string& where,
             ValueId x);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_DROPOUT_H_
