#include "kernels/xla/runtime/plugin_digest.h"

#include <memory>
#include <string_view>

#include "kernels/backend/replace_file.h"
#include "kernels/xla/pjrt/plugin_file.h"
#include "kernels/xla/runtime/sha256.h"

namespace troupe::kernels::xla {
namespace {

constexpr int64_t kMostKeptBytes = 4096;

std::string DigestOf(std::string_view bytes) {
  Sha256 digest;
  digest.Add(bytes);
  return digest.FinishAsText();
}

// The text of the small file, which ends with a checksum of its own.
std::string KeptText(const std::string& identity, const std::string& digest) {
  const std::string lines = fmt::format("troupe plugin digest 1\n{}\n{}\n", identity, digest);
  return lines + DigestOf(lines) + "\n";
}

}  // namespace

StatusOr<std::string> PluginDigest(FileSystem& files, const std::string& path,
                                   const std::string& folder) {
  const std::string identity = FileIdentity(path);
  const std::string kept = JoinPath(folder, fmt::format("plugin-{}", DigestOf(path).substr(0, 16)));
  if (!identity.empty()) {
    const StatusOr<std::string> text =
        ReadFile(files, kept, kMostKeptBytes, SymbolicLinks::kRefuse);
    constexpr size_t kDigits = 2 * Sha256::kBytes;
    if (text.ok() && text->size() >= 2 * (kDigits + 1)) {
      std::string digest = text->substr(text->size() - 2 * (kDigits + 1), kDigits);
      if (*text == KeptText(identity, digest)) return digest;
    }
  }
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file,
                          files.Map(path, SymbolicLinks::kFollow));
  const auto bytes = file->bytes();
  std::string digest = DigestOf({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  // A file that changed while it was read has another identity now.
  if (!identity.empty() && FileIdentity(path) == identity && MakeDirectories(files, folder).ok())
    ReplaceFile(files, kept, KeptText(identity, digest)).IgnoreError();
  return digest;
}

}  // namespace troupe::kernels::xla
