// Files that tests read: in memory, compressed, and the description of a dataset.
#ifndef TROUPE_DATA_TEST_FILES_H_
#define TROUPE_DATA_TEST_FILES_H_

#include <zlib.h>
#include <zstd.h>

#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/durable_write.h"
#include "base/file_system.h"
#include "data/dataset_description.h"

namespace troupe {

inline Status WriteDescription(FileSystem& files, const std::string& prefix,
                               const DatasetDescription& description) {
  return WriteFileDurably(files, DescriptionPath(prefix), AsBytes(DescriptionText(description)));
}

class MemoryFile final : public ReadableFile {
 public:
  explicit MemoryFile(std::string content) : content_(std::move(content)) {}
  int64_t size() const override { return static_cast<int64_t>(content_.size()); }
  Status ReadAt(int64_t offset, std::span<std::byte> out) const override {
    if (static_cast<size_t>(offset) + out.size() > content_.size()) return OutOfRange("the end");
    std::memcpy(out.data(), content_.data() + offset, out.size());
    return OkStatus();
  }

 private:
  const std::string content_;
};

inline std::string Gzip(std::string_view text) {
  z_stream stream{};
  TROUPE_CHECK(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string compressed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  TROUPE_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  return compressed;
}

inline std::string Zstd(std::string_view text) {
  std::string compressed(ZSTD_compressBound(text.size()), '\0');
  const size_t bytes =
      ZSTD_compress(compressed.data(), compressed.size(), text.data(), text.size(), 3);
  TROUPE_CHECK(ZSTD_isError(bytes) == 0);
  compressed.resize(bytes);
  return compressed;
}

}  // namespace troupe

#endif  // TROUPE_DATA_TEST_FILES_H_
