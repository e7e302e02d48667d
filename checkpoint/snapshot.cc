#include "checkpoint/snapshot.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace troupe {

StatusOr<Snapshot> Snapshot::Make(int rank, std::vector<ShardTensor> tensors) {
  Snapshot snapshot;
  std::vector<GlobalSlice> slices;
  for (const ShardTensor& tensor : tensors) slices.push_back(tensor.slice);
  TROUPE_ASSIGN_OR_RETURN(snapshot.layout_, LayOutShard(rank, slices));
  for (const ShardTensor& tensor : tensors) {
    TROUPE_CHECK(static_cast<int64_t>(tensor.data.size()) ==
                     *DenseBytes(tensor.slice.box.shape, tensor.slice.dtype),
                 "tensor {}", tensor.slice.name);
  }
  TROUPE_ASSIGN_OR_RETURN(snapshot.image_, AlignedMemory::Make(snapshot.layout_.bytes));
  std::memcpy(snapshot.image_.bytes().data(), snapshot.layout_.head.data(),
              snapshot.layout_.head.size());
  snapshot.ring_ = MakeStreamingRing(snapshot.image_.bytes());
  snapshot.tensors_ = std::move(tensors);
  return snapshot;
}

Status Snapshot::Copy(const std::atomic<bool>& stop) {
  constexpr size_t kStretchBytes = size_t{16} << 20;  // between two looks at `stop`
  for (const size_t i : layout_.order) {
    const std::span<const std::byte> from = tensors_[i].data;
    std::byte* const to = image_.bytes().data() + layout_.offsets[i];
    for (size_t at = 0; at < from.size(); at += kStretchBytes) {
      if (stop.load(std::memory_order_relaxed)) return Cancelled("the snapshot was stopped");
      std::memcpy(to + at, from.data() + at, std::min(kStretchBytes, from.size() - at));
    }
  }
  return OkStatus();
}

StatusOr<v1::ShardFile> Snapshot::Write(FileSystem& files, const std::string& directory,
                                        const ShardWriteOptions& options) const {
  ShardWriteOptions through_ring = options;
  through_ring.ring = ring_.get();
  return WriteShardImage(files, directory, layout_, image_.bytes(), through_ring);
}

}  // namespace troupe
