// An untrusted safetensors file is either refused, or its tensors fill the buffer without a hole.
#include <cstdint>
#include <cstring>
#include <set>

#include "base/check.h"
#include "checkpoint/format/safetensors.h"

namespace {

class Bytes final : public troupe::ReadableFile {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  troupe::Status ReadAt(int64_t offset, std::span<std::byte> out) const override {
    TROUPE_CHECK(offset >= 0);
    if (static_cast<uint64_t>(offset) > bytes_.size() ||
        out.size() > bytes_.size() - static_cast<size_t>(offset)) {
      return troupe::OutOfRange("read of {} bytes at {}", out.size(), offset);
    }
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return troupe::OkStatus();
  }

 private:
  const std::span<const std::byte> bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes file(std::as_bytes(std::span(data, size)));
  const auto header = troupe::ReadSafetensorsHeader(file);
  if (!header.ok()) return 0;
  int64_t end = 0;
  std::set<std::string> names;
  for (const troupe::SafetensorsEntry& entry : header->entries) {
    TROUPE_CHECK(entry.begin == end && entry.end >= entry.begin, "{} leaves a hole", entry.name);
    TROUPE_CHECK(*troupe::DenseBytes(entry.shape, entry.dtype) == entry.end - entry.begin);
    TROUPE_CHECK(names.insert(entry.name).second, "{} twice", entry.name);
    end = entry.end;
  }
  TROUPE_CHECK(header->buffer_offset + end == file.size());
  return 0;
}
