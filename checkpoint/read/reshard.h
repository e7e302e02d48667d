// Maps between layouts: which stored slices contain the parts of a requested slice, and where the
// contiguous runs of their data are. Pure.
#ifndef TROUPE_CHECKPOINT_READ_RESHARD_H_
#define TROUPE_CHECKPOINT_READ_RESHARD_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "checkpoint/format/slice.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

// One read: the part `common` of a requested slice is in a stored slice.
struct SliceRead {
  int shard = 0;      // index in the manifest
  int tensor = 0;     // index in the shard
  size_t wanted = 0;  // index in the wanted slices
  Box common;         // in global indices
};

// Returns the reads that fill `wanted`, in the order of the shards and of the data within them, so
// that each file is read once, front to back. NOT_FOUND for a tensor that the checkpoint lacks;
// FAILED_PRECONDITION, naming both sides, for a different global shape or dtype. REQUIRES: a
// validated manifest, valid wanted slices.
StatusOr<std::vector<SliceRead>> PlanReads(const v1::CheckpointManifest& manifest,
                                           std::span<const GlobalSlice> wanted);

// Calls `run(source_offset, destination_offset, bytes)` for the longest contiguous runs that copy
// `common` from the row-major data of box `source` to those of box `destination`, in the order of
// the source. Stops at the first error and returns it. Offsets are in bytes. REQUIRES: `common` is
// not empty and is within both boxes.
Status ForEachRun(const Box& common, const Box& source, const Box& destination, int64_t item_bytes,
                  const std::function<Status(int64_t source_offset, int64_t destination_offset,
                                             int64_t bytes)>& run);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_READ_RESHARD_H_
