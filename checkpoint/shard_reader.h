// Reads slices of global tensors out of a checkpoint, under whatever layout it was written.
#ifndef TROUPE_CHECKPOINT_SHARD_READER_H_
#define TROUPE_CHECKPOINT_SHARD_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/slice.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

// A file whose every 4 MiB block is checked against its checksum before a byte of it is handed out.
// Not thread-safe.
class VerifiedFile final : public ReadableFile {
 public:
  // DATA_LOSS if the size is not the manifest's. `shard` and `files` must outlive the object.
  static StatusOr<VerifiedFile> Open(FileSystem& files, const std::string& directory,
                                     const v1::ShardFile& shard);

  int64_t size() const override { return shard_->bytes(); }

  // DATA_LOSS naming file, block and tensors where a block is not what was written.
  Status ReadAt(int64_t offset, std::span<std::byte> out) const override;

  // The same file, unchecked.
  const ReadableFile& file() const { return *file_; }

 private:
  VerifiedFile() = default;
  Status Load(int64_t block) const;

  std::string path_;
  const v1::ShardFile* shard_ = nullptr;
  std::unique_ptr<ReadableFile> file_;
  // The last block read: reads come in the order of the file.
  mutable int64_t block_ = -1;
  mutable std::vector<std::byte> bytes_;
};

// "tensors a, b": those whose data lie in bytes [begin, end) of the file; "the header" before the
// first. After `names_max` names it is "and 3 more".
std::string TensorsWithin(const v1::ShardFile& shard, int64_t begin, int64_t end, int names_max);

struct LoadTarget {
  GlobalSlice slice;
  std::span<std::byte> data;  // row-major, of the slice's bytes
};

// Fills the targets from the checkpoint in `directory` whose manifest is `manifest` (ReadManifest).
// Every file must be there in its stated size, every file read must describe the tensors that the
// manifest states, and every block that is read is verified before it is copied; only blocks that
// hold wanted bytes are read, and each header. Several threads read ahead in the order of the
// files. On an error what the targets hold is undefined and must not be used: DATA_LOSS naming file
// and tensor for damage, NOT_FOUND for a missing file or tensor, FAILED_PRECONDITION for a shape or
// dtype that differs. Failpoint checkpoint.load.verified.
Status LoadSlices(FileSystem& files, const std::string& directory,
                  const v1::CheckpointManifest& manifest, std::span<const LoadTarget> targets);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_SHARD_READER_H_
