// The layout of one rank's shard file: the bytes of the header and the offset of each tensor. It
// depends on rank and slices alone, so it is computed once and used for every save.
//
// Invariant: the head and then the data in the order of `order` fill the file without a gap. A file
// that is written tensor by tensor (checkpoint/write/shard_writer.h) therefore has the bytes of one
// that is written from an image (checkpoint/write/snapshot.h), which snapshot_test.cc checks.
#ifndef TROUPE_CHECKPOINT_FORMAT_SHARD_LAYOUT_H_
#define TROUPE_CHECKPOINT_FORMAT_SHARD_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/format/slice.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

struct ShardLayout {
  std::string head;              // the bytes before the data
  std::vector<size_t> order;     // indices of the slices in file order
  std::vector<int64_t> offsets;  // offset of each slice's data in the file, by index of slice
  int64_t bytes = 0;             // size of the file
  v1::ShardFile shard;           // name, rank and tensors
};

// INVALID_ARGUMENT for invalid slices, or for too many slices for one header.
StatusOr<ShardLayout> LayOutShard(int rank, const std::vector<GlobalSlice>& slices);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_FORMAT_SHARD_LAYOUT_H_
