#include "checkpoint/write/snapshot.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace troupe {

StatusOr<Snapshot> Snapshot::Make(int rank, std::vector<ShardTensor> tensors, const Pin& pin) {
  Snapshot snapshot;
  std::vector<GlobalSlice> slices;
  for (const ShardTensor& tensor : tensors) slices.push_back(tensor.slice);
  TROUPE_ASSIGN_OR_RETURN(snapshot.layout_, LayOutShard(rank, slices));
  for (const ShardTensor& tensor : tensors) {
    TROUPE_CHECK(tensor.read || static_cast<int64_t>(tensor.data.size()) ==
                                    *DenseBytes(tensor.slice.box.shape, tensor.slice.dtype),
                 "tensor {}", tensor.slice.name);
  }
  TROUPE_ASSIGN_OR_RETURN(snapshot.image_, AlignedMemory::Make(snapshot.layout_.bytes));
  if (pin) snapshot.pinned_ = pin(snapshot.image_.bytes());
  std::memcpy(snapshot.image_.bytes().data(), snapshot.layout_.head.data(),
              snapshot.layout_.head.size());
  snapshot.ring_ = MakeStreamingRing(snapshot.image_.bytes());
  snapshot.tensors_ = std::move(tensors);
  return snapshot;
}

Status Snapshot::Copy(const std::atomic<bool>& stop) {
  constexpr int64_t kStretchBytes = int64_t{16} << 20;  // between two checks of `stop`
  for (const size_t i : layout_.order) {
    const ShardTensor& tensor = tensors_[i];
    const int64_t bytes = *DenseBytes(tensor.slice.box.shape, tensor.slice.dtype);
    const auto to = image_.bytes().subspan(static_cast<size_t>(layout_.offsets[i]));
    for (int64_t at = 0; at < bytes; at += kStretchBytes) {
      if (stop.load(std::memory_order_relaxed)) return Cancelled("the snapshot was stopped");
      const int64_t stretch = std::min(kStretchBytes, bytes - at);
      TROUPE_RETURN_IF_ERROR(
          CopyPart(tensor, at, to.subspan(static_cast<size_t>(at), static_cast<size_t>(stretch))));
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
