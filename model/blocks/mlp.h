// Block D: pre-norm SwiGLU MLP with a residual.
//
//   y = x + ReduceRows(down_proj(swiglu(gate_up_proj(CopyRows(norm(x))))))
//
// gate|up is column-parallel over tensor, each segment sharded separately; down_proj is
// row-parallel.
#ifndef TROUPE_MODEL_BLOCKS_MLP_H_
#define TROUPE_MODEL_BLOCKS_MLP_H_

#include "model/config.h"
#include "model/blocks/dropout.h"
#include "model/program/builder.h"

namespace troupe::model {

// x: c[R,H]. Returns y c[R,H]. `dropout` applies to the block's output before the residual.
ValueId BuildMlp(ProgramBuilder& builder, const ModelConfig& config, int block, ValueId x,
                 const DropoutPolicy& dropout);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_MLP_H_
