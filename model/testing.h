// Small programs for tests of this folder and of folders that run programs.
#ifndef TROUPE_MODEL_TESTING_H_
#define TROUPE_MODEL_TESTING_H_

#include <string>
#include <vector>

#include "model/build.h"
#include "model/program/op.h"

namespace troupe::model {

// Hidden 16, 4 heads of 4 with 2 key-value heads, ffn 21, vocabulary 37: extents that tensor 2
// divides unevenly.
ModelConfig SmallModel(std::string blocks);
// SmallModel with 4 experts of ffn 10 per block E, 2 per token, one shared, auxiliary and z losses.
ModelConfig SmallMixture(std::string blocks);
// The published configuration of the preset llama-124m.
ModelConfig Llama124m();

// Options of one rank if stage `mesh.coordinates[pipe]` of `stages` holds an equal share of the
// blocks.
BuildOptions StageOptions(const ModelConfig& model, const MeshView& mesh, int64_t micro_batch_size,
                          int64_t sequence_length);

// Returns whether `op` is a matmul of a linear layer, or the gradient of its input or weight.
bool IsMatmul(const Op& op);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_TESTING_H_
