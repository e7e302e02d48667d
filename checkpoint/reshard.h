// From any layout to any layout: which stored slices hold the parts of a wanted one, and how their
// rows lie. Pure.
#ifndef TROUPE_CHECKPOINT_RESHARD_H_
#define TROUPE_CHECKPOINT_RESHARD_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "checkpoint/slice.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

// The part `common` of a wanted slice lies in a stored one.
struct SliceRead {
  int shard = 0;      // index in the manifest
  int tensor = 0;     // index in the shard
  size_t wanted = 0;  // index in the wanted slices
  Box common;         // in global indices
};

// The reads that fill `wanted`, in the order of shards and of the data within them, so that each
// file is read once, forwards. NOT_FOUND for a tensor that the checkpoint has not,
// FAILED_PRECONDITION naming both sides for a global shape or dtype that differs. REQUIRES: a
// validated manifest, valid wanted slices.
StatusOr<std::vector<SliceRead>> PlanReads(const v1::CheckpointManifest& manifest,
                                           std::span<const GlobalSlice> wanted);

// Calls `run(source_offset, destination_offset, bytes)` for the longest contiguous runs that copy
// `common` out of the row-major data of box `source` into those of box `destination`, in the order
// of the source; stops at an error. Offsets in bytes. REQUIRES: `common` lies within both, and is
// not empty.
Status ForEachRun(const Box& common, const Box& source, const Box& destination, int64_t item_bytes,
                  const std::function<Status(int64_t source_offset, int64_t destination_offset,
                                             int64_t bytes)>& run);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_RESHARD_H_
