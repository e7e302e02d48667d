// Where everything lies in one rank's shard file: the header's bytes and each tensor's place. A
// function of rank and slices alone, so that it is made once and serves every save.
#ifndef TROUPE_CHECKPOINT_SHARD_LAYOUT_H_
#define TROUPE_CHECKPOINT_SHARD_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/slice.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

struct ShardLayout {
  std::string head;              // what goes before the data
  std::vector<size_t> order;     // the slices as they follow each other in the file
  std::vector<int64_t> offsets;  // of each slice's data in the file, by index of slice
  int64_t bytes = 0;             // of the file
  v1::ShardFile shard;           // name, rank and tensors
};

// INVALID_ARGUMENT for slices that are not valid or too many for a header.
StatusOr<ShardLayout> LayOutShard(int rank, const std::vector<GlobalSlice>& slices);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_SHARD_LAYOUT_H_
