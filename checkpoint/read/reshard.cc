#include "checkpoint/read/reshard.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "base/check.h"
#include "checkpoint/format/manifest.h"

namespace troupe {
namespace {

struct Stored {
  int shard;
  int tensor;
  GlobalSlice slice;
};

// Returns the row-major offset, in elements, of global index `at` in `box`.
int64_t LinearIndex(const Box& box, const Extents& at) {
  int64_t index = 0;
  for (size_t d = 0; d < at.size(); ++d) index = index * box.shape[d] + (at[d] - box.offset[d]);
  return index;
}

}  // namespace

StatusOr<std::vector<SliceRead>> PlanReads(const v1::CheckpointManifest& manifest,
                                           std::span<const GlobalSlice> wanted) {
  std::unordered_map<std::string, std::vector<Stored>> stored_of;
  for (int s = 0; s < manifest.shards_size(); ++s) {
    for (int t = 0; t < manifest.shards(s).tensors_size(); ++t) {
      GlobalSlice slice = SliceOf(manifest.shards(s).tensors(t));
      std::string name = slice.name;
      stored_of[std::move(name)].push_back({s, t, std::move(slice)});
    }
  }
  std::vector<SliceRead> reads;
  for (size_t w = 0; w < wanted.size(); ++w) {
    const GlobalSlice& want = wanted[w];
    const auto found = stored_of.find(want.name);
    if (found == stored_of.end()) {
      return NotFound("tensor {} is not in the checkpoint", want.name);
    }
    const GlobalSlice& first = found->second.front().slice;
    if (first.global_shape != want.global_shape || first.dtype != want.dtype) {
      return FailedPrecondition("tensor {}: the checkpoint has {} of {}, the model {} of {}",
                                want.name, ToString(first.global_shape), first.dtype,
                                ToString(want.global_shape), want.dtype);
    }
    int64_t missing = *Elements(want.box.shape);
    for (const Stored& stored : found->second) {
      auto common = Intersect(stored.slice.box, want.box);
      // A scalar intersects itself; an empty tensor needs no read.
      if (!common.has_value()) continue;
      missing -= *Elements(common->shape);
      reads.push_back({stored.shard, stored.tensor, w, *std::move(common)});
    }
    TROUPE_CHECK(missing == 0, "tensor {}: the manifest was not validated", want.name);
  }
  std::sort(reads.begin(), reads.end(), [&](const SliceRead& a, const SliceRead& b) {
    const auto place = [&](const SliceRead& read) {
      return std::tuple(read.shard, manifest.shards(read.shard).tensors(read.tensor).data_begin(),
                        read.wanted);
    };
    return place(a) < place(b);
  });
  return reads;
}

Status ForEachRun(const Box& common, const Box& source, const Box& destination, int64_t item_bytes,
                  const std::function<Status(int64_t, int64_t, int64_t)>& run) {
  const size_t dims = common.shape.size();
  // All dims after `split` are whole in all three boxes, so a run spans them and the common part of
  // dim `split`.
  size_t split = dims;
  int64_t run_elements = 1;
  while (split > 0) {
    --split;
    run_elements *= common.shape[split];
    if (common.shape[split] != source.shape[split] ||
        common.shape[split] != destination.shape[split]) {
      break;
    }
  }
  Extents at = common.offset;
  while (true) {
    TROUPE_RETURN_IF_ERROR(run(LinearIndex(source, at) * item_bytes,
                               LinearIndex(destination, at) * item_bytes,
                               run_elements * item_bytes));
    // Advances the index over the dims before `split`, the last dim fastest.
    size_t d = split;
    while (d > 0) {
      --d;
      if (++at[d] < common.offset[d] + common.shape[d]) break;
      at[d] = common.offset[d];
      if (d == 0) return OkStatus();
    }
    if (split == 0) return OkStatus();
  }
}

}  // namespace troupe
