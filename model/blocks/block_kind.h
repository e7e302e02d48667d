// A kind of block: everything that the planner, the program builder and the checks ask about it.
//
// A kind is one file of this folder, which defines its record, and one row in block_kinds.def. No
// other file compares letters: it asks the record. Records are constants; thread-safe.
#ifndef TROUPE_MODEL_BLOCKS_BLOCK_KIND_H_
#define TROUPE_MODEL_BLOCKS_BLOCK_KIND_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/blocks/build_options.h"
#include "model/blocks/config.h"
#include "model/blocks/dropout.h"
#include "model/program/builder.h"

namespace troupe::model {

struct BlockInputs {
  int block = 0;          // position in ModelConfig::blocks
  int layer = 0;          // its Hugging Face layer (model/blocks/pattern.h)
  ValueId x = kNoValue;   // c[R,H]
  DropoutPolicy dropout;  // applied to the block's output before the residual
};

// Forward FLOPs by the convention of plan/cost/estimate.h.
struct BlockFlops {
  double weights = 0;  // matmuls with a weight
  double pairs = 0;    // query-key pairs; backward has twice as many
  double total() const { return weights + pairs; }
};

struct BlockKind {
  char letter = 0;  // in a model's pattern
  // Appends the block's operations and parameters to F of the current chunk and returns y c[R,H];
  // failures are those of `builder`. REQUIRES: `check` accepts `options`; the chunk has the inputs
  // `positions`, `documents` if options.document_mask, and `channels`. Null: the pattern's grammar
  // has the letter, and this build does not have the block.
  ValueId (*build)(ProgramBuilder& builder, const BuildOptions& options,
                   const BlockInputs& inputs) = nullptr;
  // Returns INVALID_ARGUMENT for options with which no block of the kind can be built, beyond those
  // that are refused for every model (model/check_options.h). Null: there are none.
  Status (*check)(const BuildOptions& options) = nullptr;
  // Elements before any sharding, the block's own norm included.
  int64_t (*parameters)(const ModelConfig& model) = nullptr;
  // For `samples` samples of `tokens` tokens each.
  BlockFlops (*flops)(const ModelConfig& model, double samples, double tokens) = nullptr;
  std::span<const std::string_view> channels;  // channels of samples that build reads

  bool attends = false;            // has query-key pairs and reads the keys of attention
  bool begins_layer = false;       // in the tensor names of Hugging Face
  bool has_experts = false;        // routes tokens; reads the keys of experts
  bool has_linear_layers = false;  // in every model; a float8 recipe applies to them
  bool reads_intermediate_size = false;
  bool is_recurrent = false;
};

// One declaration per row of block_kinds.def.
#define TROUPE_BLOCK_KIND(kind) extern const BlockKind kind;
#include "model/blocks/block_kinds.def"
#undef TROUPE_BLOCK_KIND

// All kinds, also those that this build does not have.
std::span<const BlockKind* const> BlockKinds();

// The kind with this letter; null if there is none.
const BlockKind* FindBlockKind(char letter);

// REQUIRES: `letter` is that of a kind which this build has.
const BlockKind& BlockKindOf(char letter);

// Returns "A, D and E": the letters of the kinds that this build has.
std::string BuiltLetters();

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_BLOCK_KIND_H_
