// Patterns of blocks, such as "(AD)x4", and questions about the blocks of a pattern. Pure.
#ifndef TROUPE_MODEL_BLOCKS_PATTERN_H_
#define TROUPE_MODEL_BLOCKS_PATTERN_H_

#include <string>
#include <string_view>

#include "base/status.h"
#include "model/blocks/block_kind.h"

namespace troupe::model {

// Expands "(AD)x4" or "ADAD" to "ADADADAD". Grammar: item := LETTER | "(" item+ ")"; "x" COUNT may
// follow an item. INVALID_ARGUMENT names the position of the first wrong character, an unknown
// letter, or more than 4096 blocks.
StatusOr<std::string> ExpandPattern(std::string_view pattern);

// The Hugging Face layer number of a block. Every kind that begins a layer ("A") begins one, and so
// does another block if its layer has such a block already. An attention block and the MLP after it
// thus share a layer ("ADAD": 0 0 1 1; "ADD": 0 0 1), and no two blocks share a tensor name.
// REQUIRES: `blocks` is an expanded pattern.
int LayerOfBlock(std::string_view blocks, int block);
int NumLayers(std::string_view blocks);

// Number of blocks with `trait`: CountBlocks(blocks, &BlockKind::attends). In a pattern that is not
// expanded a repeated letter counts once.
int CountBlocks(std::string_view pattern, bool BlockKind::*trait);
bool HasBlock(std::string_view pattern, bool BlockKind::*trait);
inline bool HasExperts(std::string_view pattern) {
  return HasBlock(pattern, &BlockKind::has_experts);
}

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_PATTERN_H_
