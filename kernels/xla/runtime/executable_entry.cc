#include "kernels/xla/runtime/executable_entry.h"

#include "base/check.h"
#include "kernels/xla/runtime/sha256.h"

namespace troupe::kernels::xla {
namespace {

constexpr std::string_view kMagic = "TROUPEXE";
constexpr size_t kVersionAt = kMagic.size();
constexpr size_t kKeyAt = kVersionAt + 4;
constexpr size_t kLengthAt = kKeyAt + kEntryKeyBytes;
constexpr size_t kDigestAt = kLengthAt + 8;
static_assert(kDigestAt + Sha256::kBytes == kEntryHeaderBytes);

void AppendNumber(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t NumberAt(std::string_view file, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value |= static_cast<uint64_t>(static_cast<unsigned char>(file[at + i])) << (8 * i);
  return value;
}

std::string DigestOf(std::string_view head, std::string_view plugin_bytes) {
  Sha256 digest;
  digest.Add(head);
  digest.Add(plugin_bytes);
  return digest.Finish();
}

}  // namespace

std::string EncodeEntry(std::string_view key, std::string_view plugin_bytes) {
  TROUPE_CHECK(key.size() == kEntryKeyBytes, "a key of {} bytes", key.size());
  std::string file(kMagic);
  file.reserve(kEntryHeaderBytes + plugin_bytes.size());
  AppendNumber(kEntryVersion, 4, &file);
  file += key;
  AppendNumber(plugin_bytes.size(), 8, &file);
  file += DigestOf(file, plugin_bytes);
  file += plugin_bytes;
  return file;
}

StatusOr<std::string_view> DecodeEntry(std::string_view key, std::string_view file) {
  if (!file.starts_with(kMagic.substr(0, file.size())))
    return InvalidArgument("is of another kind");
  if (file.size() < kEntryHeaderBytes) return InvalidArgument("is truncated");
  if (NumberAt(file, kVersionAt, 4) != kEntryVersion)
    return InvalidArgument("has another version of the format");
  if (file.substr(kKeyAt, kEntryKeyBytes) != key) return InvalidArgument("has another key");
  const uint64_t length = NumberAt(file, kLengthAt, 8);
  const std::string_view plugin_bytes = file.substr(kEntryHeaderBytes);
  if (plugin_bytes.size() < length) return InvalidArgument("is truncated");
  if (plugin_bytes.size() > length ||
      file.substr(kDigestAt, Sha256::kBytes) != DigestOf(file.substr(0, kDigestAt), plugin_bytes)) {
    return InvalidArgument("is damaged");
  }
  return plugin_bytes;
}

}  // namespace troupe::kernels::xla
