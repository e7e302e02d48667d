// Reads slices of global tensors from a checkpoint, whatever the layout under which it was written.
#ifndef TROUPE_CHECKPOINT_READ_SHARD_READER_H_
#define TROUPE_CHECKPOINT_READ_SHARD_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/format/slice.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

// A file that verifies every 4 MiB block against its checksum before it returns any byte of the
// block. Not thread-safe.
class VerifiedFile final : public ReadableFile {
 public:
  // DATA_LOSS if the size differs from the manifest's. `shard` and `files` must outlive the object.
  static StatusOr<VerifiedFile> Open(FileSystem& files, const std::string& directory,
                                     const v1::ShardFile& shard);

  int64_t size() const override { return shard_->bytes(); }

  // DATA_LOSS names file, block and tensors if a block is not what was written.
  Status ReadAt(int64_t offset, std::span<std::byte> out) const override;

  // Returns the same file without verification.
  const ReadableFile& file() const { return *file_; }

 private:
  VerifiedFile() = default;
  Status Load(int64_t block) const;

  std::string path_;
  const v1::ShardFile* shard_ = nullptr;
  std::unique_ptr<ReadableFile> file_;
  // The block read last: reads proceed in file order.
  mutable int64_t block_ = -1;
  mutable std::vector<std::byte> bytes_;
};

// The most tensor names in a text for people or a log; the JSON of `checkpoints verify` has all.
inline constexpr int kNamesInErrors = 3;

// Names the parts of the file in bytes [begin, end): "tensor a", "tensors a, b", "the header", or
// "the header, tensors a". After `names_max` names it appends " and 3 more".
std::string TensorsWithin(const v1::ShardFile& shard, int64_t begin, int64_t end, int names_max);

struct LoadTarget {
  GlobalSlice slice;
  std::span<std::byte> data;  // row-major, exactly the slice's bytes
};

// Fills the targets from the checkpoint in `directory` with the manifest `manifest` (ReadManifest).
// Every file must exist with its stated size, every file that is read must describe the tensors
// that the manifest states, and every block is verified before it is copied. Only the headers and
// the blocks with requested bytes are read, by several threads in file order.
//
// After an error the contents of the targets are undefined and must not be used: DATA_LOSS names
// file and tensor for damage, NOT_FOUND is for a missing file or tensor, FAILED_PRECONDITION for a
// shape or dtype that differs. Failpoint checkpoint.load.verified.
Status LoadSlices(FileSystem& files, const std::string& directory,
                  const v1::CheckpointManifest& manifest, std::span<const LoadTarget> targets);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_READ_SHARD_READER_H_
