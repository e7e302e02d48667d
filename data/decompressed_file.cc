#include "data/decompressed_file.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <span>

namespace troupe {
namespace {

constexpr int64_t kReadBytes = int64_t{1} << 20;

enum class Compression { kNone, kGzip, kZstd };

// Returns by what a file that begins with `head` is compressed. A file of zstd may begin with a
// frame to skip, whose magic number ends in any half byte.
Compression CompressionOf(std::string_view head) {
  if (head.starts_with("\x1F\x8B")) return Compression::kGzip;
  if (head.starts_with("\x28\xB5\x2F\xFD")) return Compression::kZstd;
  if (head.size() >= 4 && (head[0] & 0xF0) == 0x50 && head.substr(1, 3) == "\x2A\x4D\x18") {
    return Compression::kZstd;
  }
  return Compression::kNone;
}

}  // namespace

void DecompressedFile::ZlibEnd::operator()(z_stream_s* stream) const {
  inflateEnd(stream);
  delete stream;
}

void DecompressedFile::ZstdEnd::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

StatusOr<std::unique_ptr<DecompressedFile>> DecompressedFile::Open(const ReadableFile& file,
                                                                   std::string path) {
  std::unique_ptr<DecompressedFile> opened(new DecompressedFile(file, std::move(path)));
  TROUPE_RETURN_IF_ERROR(opened->Fill());
  switch (CompressionOf(opened->input_)) {
    case Compression::kNone:
      break;
    case Compression::kGzip:
      opened->zlib_.reset(new z_stream{});
      if (inflateInit2(opened->zlib_.get(), 16 + MAX_WBITS) != Z_OK) {
        return ResourceExhausted("{}: zlib cannot be initialized", opened->path_);
      }
      break;
    case Compression::kZstd:
      opened->zstd_.reset(ZSTD_createDCtx());
      if (opened->zstd_ == nullptr) {
        return ResourceExhausted("{}: zstd cannot be initialized", opened->path_);
      }
      break;
  }
  return opened;
}

Status DecompressedFile::Fill() {
  buffer_.resize(static_cast<size_t>(std::min(kReadBytes, file_.size() - bytes_read_)));
  if (!buffer_.empty()) {
    TROUPE_RETURN_IF_ERROR(file_.ReadAt(bytes_read_, std::as_writable_bytes(std::span(buffer_))));
  }
  bytes_read_ += static_cast<int64_t>(buffer_.size());
  input_ = buffer_;
  return OkStatus();
}

StatusOr<std::string_view> DecompressedFile::Next() {
  if (!is_compressed()) {
    if (input_.empty()) TROUPE_RETURN_IF_ERROR(Fill());
    return std::exchange(input_, {});
  }
  output_.resize(static_cast<size_t>(kReadBytes));
  size_t made = 0;
  while (made < output_.size()) {
    if (input_.empty()) TROUPE_RETURN_IF_ERROR(Fill());
    const bool at_end = input_.empty();
    if (at_end && !is_inside_) break;
    const std::span<char> room = std::span(output_).subspan(made);
    TROUPE_ASSIGN_OR_RETURN(const size_t bytes,
                            zlib_ != nullptr ? Inflate(room) : DecompressZstd(room));
    if (at_end && is_inside_ && bytes == 0) return Damaged("they end early");
    made += bytes;
  }
  return std::string_view(output_).substr(0, made);
}

StatusOr<size_t> DecompressedFile::Inflate(std::span<char> out) {
  if (!is_inside_) {
    if (had_member_) input_.remove_prefix(std::min(input_.find_first_not_of('\0'), input_.size()));
    if (input_.empty()) return 0;
    inflateReset(zlib_.get());
    is_inside_ = had_member_ = true;
  }
  // zlib does not change the input; its type lacks a const.
  zlib_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));
  zlib_->avail_in = static_cast<uInt>(input_.size());
  zlib_->next_out = reinterpret_cast<Bytef*>(out.data());
  zlib_->avail_out = static_cast<uInt>(out.size());
  const int code = inflate(zlib_.get(), Z_NO_FLUSH);
  input_.remove_prefix(input_.size() - zlib_->avail_in);
  if (code == Z_STREAM_END) {
    is_inside_ = false;
  } else if (code != Z_OK && code != Z_BUF_ERROR) {  // the latter: no input, or no room
    return Damaged(zlib_->msg != nullptr ? zlib_->msg : zError(code));
  }
  return out.size() - zlib_->avail_out;
}

StatusOr<size_t> DecompressedFile::DecompressZstd(std::span<char> out) {
  ZSTD_inBuffer from{input_.data(), input_.size(), 0};
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  const size_t left = ZSTD_decompressStream(zstd_.get(), &to, &from);
  input_.remove_prefix(from.pos);
  if (ZSTD_isError(left) != 0) return Damaged(ZSTD_getErrorName(left));
  is_inside_ = left != 0;
  return to.pos;
}

Status DecompressedFile::Damaged(std::string_view why) const {
  return InvalidArgument("{}: its {} data cannot be decompressed beyond byte {} of {}: {}", path_,
                         zlib_ != nullptr ? "gzip" : "zstd",
                         bytes_read_ - static_cast<int64_t>(input_.size()), file_.size(), why);
}

}  // namespace troupe
