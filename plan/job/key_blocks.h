// The blocks without which a key of the job file is refused (KeyOptions.blocks). Pure.
#ifndef TROUPE_PLAN_JOB_KEY_BLOCKS_H_
#define TROUPE_PLAN_JOB_KEY_BLOCKS_H_

#include <string>
#include <string_view>

#include "model/blocks/block_kind.h"
#include "troupe/v1/key.pb.h"

namespace troupe {

// Whether `pattern` has a block that reads the key; true for the keys of every model.
bool HasBlockThatReads(const v1::KeyOptions& options, std::string_view pattern);

// The letters of the blocks that read the key, "E" or "A or B"; empty for the keys of every model.
std::string BlocksThatRead(const v1::KeyOptions& options);

// The letters of the blocks with `trait`, "A or B".
std::string BlocksWith(bool model::BlockKind::*trait);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_KEY_BLOCKS_H_
