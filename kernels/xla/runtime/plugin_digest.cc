#include "kernels/xla/runtime/plugin_digest.h"

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string_view>

#include "kernels/backend/replace_file.h"
#include "kernels/xla/runtime/sha256.h"

namespace troupe::kernels::xla {
namespace {

constexpr int64_t kMostKeptBytes = 4096;

std::string DigestOf(std::string_view bytes) {
  Sha256 digest;
  digest.Add(bytes);
  return digest.FinishAsText();
}

// Returns a line that differs if the file is replaced or changed; none if it cannot be examined.
// The time of the last change of the inode cannot be set.
std::optional<std::string> IdentityOf(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return fmt::format("{} {} {} {}.{:09} {}.{:09}", info.st_dev, info.st_ino, info.st_size,
                     info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                     info.st_ctim.tv_nsec);
}

// The text of the small file, which ends with a checksum of its own.
std::string KeptText(const std::string& identity, const std::string& digest) {
  const std::string lines = fmt::format("troupe plugin digest 1\n{}\n{}\n", identity, digest);
  return lines + DigestOf(lines) + "\n";
}

}  // namespace

StatusOr<std::string> PluginDigest(FileSystem& files, const std::string& path,
                                   const std::string& folder) {
  const std::optional<std::string> identity = IdentityOf(path);
  const std::string kept = JoinPath(folder, fmt::format("plugin-{}", DigestOf(path).substr(0, 16)));
  if (identity) {
    const StatusOr<std::string> text =
        ReadFile(files, kept, kMostKeptBytes, SymbolicLinks::kRefuse);
    constexpr size_t kDigits = 2 * Sha256::kBytes;
    if (text.ok() && text->size() >= 2 * (kDigits + 1)) {
      std::string digest = text->substr(text->size() - 2 * (kDigits + 1), kDigits);
      if (*text == KeptText(*identity, digest)) return digest;
    }
  }
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file,
                          files.Map(path, SymbolicLinks::kFollow));
  const auto bytes = file->bytes();
  std::string digest = DigestOf({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  // A file that changed while it was read has another identity now.
  if (identity && IdentityOf(path) == identity && MakeDirectories(files, folder).ok())
    ReplaceFile(files, kept, KeptText(*identity, digest)).IgnoreError();
  return digest;
}

}  // namespace troupe::kernels::xla
