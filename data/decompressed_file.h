// A file that is read from its start to its end, decompressed where it is compressed: by gzip (also
// with several members, or padded with zeros) or by zstd (also with several frames). The content
// decides, not the name. However much a file decompresses to, the memory stays below 140 MB, of
// which 134 MB are the largest window that zstd accepts by default. Not thread-safe.
#ifndef TROUPE_DATA_DECOMPRESSED_FILE_H_
#define TROUPE_DATA_DECOMPRESSED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"

struct ZSTD_DCtx_s;
struct z_stream_s;

namespace troupe {

class DecompressedFile {
 public:
  // Reads the first bytes of `file`, named `path` in errors. `file` must outlive the object.
  // Returns the errors of ReadableFile::ReadAt.
  static StatusOr<std::unique_ptr<DecompressedFile>> Open(const ReadableFile& file,
                                                          std::string path);

  bool is_compressed() const { return zlib_ != nullptr || zstd_ != nullptr; }

  // Returns the next bytes, at most 1 MiB, which are valid until the next call, and none at the
  // end. INVALID_ARGUMENT names the file and the place if its compressed data are damaged, end
  // early or need a larger window; also the errors of ReadableFile::ReadAt. REQUIRES: no call has
  // failed.
  StatusOr<std::string_view> Next();

  // Returns how many bytes of the file have been read, as it is stored.
  int64_t bytes_read() const { return bytes_read_; }

 private:
  struct ZlibEnd {
    void operator()(z_stream_s* stream) const;
  };
  struct ZstdEnd {
    void operator()(ZSTD_DCtx_s* context) const;
  };

  DecompressedFile(const ReadableFile& file, std::string path)
      : file_(file), path_(std::move(path)) {}
  // Reads more of the file into `input_`, which is empty after the last byte.
  Status Fill();
  // Decompresses a part of `input_` to `out` and returns the number of bytes there.
  StatusOr<size_t> Inflate(std::span<char> out);
  StatusOr<size_t> DecompressZstd(std::span<char> out);
  Status Damaged(std::string_view why) const;

  const ReadableFile& file_;
  const std::string path_;
  std::unique_ptr<z_stream_s, ZlibEnd> zlib_;   // null unless the file is gzip's
  std::unique_ptr<ZSTD_DCtx_s, ZstdEnd> zstd_;  // null unless the file is zstd's
  bool is_inside_ = false;                      // a member or a frame has not ended
  bool had_member_ = false;
  std::string buffer_;      // the bytes of the file that were read last
  std::string_view input_;  // the rest of them
  std::string output_;
  int64_t bytes_read_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_DATA_DECOMPRESSED_FILE_H_
