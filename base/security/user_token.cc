#include "base/security/user_token.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "base/check.h"
#include "base/security/identity.h"
#include "base/security/openssl.h"
#include "base/security/random_hex.h"

namespace troupe {
namespace {

constexpr std::string_view kKind = "troupe";
constexpr char kSeparator = '~';  // no cluster has it in its name
constexpr size_t kIdBytes = 8;
constexpr size_t kSecretBytes = 32;
constexpr size_t kMostFileBytes = 4096;

// Reads the regular file `descriptor`, which only its owner may use.
StatusOr<std::string> ReadOwnFile(int descriptor, const std::string& path) {
  struct stat info {};
  if (fstat(descriptor, &info) != 0) return ErrnoStatus(errno, fmt::format("stat {}", path));
  if (!S_ISREG(info.st_mode)) return InvalidArgument("{} is not a regular file", path);
  if ((info.st_mode & 0077) != 0) {
    return InvalidArgument(
        "{}: others may use this token (mode {:04o}); only its owner may be able to: chmod 600 {}",
        path, info.st_mode & 07777, path);
  }
  std::string text(kMostFileBytes + 1, '\0');
  const ssize_t got = pread(descriptor, text.data(), text.size(), 0);
  if (got < 0) return ErrnoStatus(errno, fmt::format("read {}", path));
  text.resize(static_cast<size_t>(got));
  if (text.size() > kMostFileBytes)
    return InvalidArgument("{} has more than {} bytes, so it is no token", path, kMostFileBytes);
  return text;
}

}  // namespace

StatusOr<UserTokenParts> MakeUserToken(const std::string& cluster) {
  UserTokenParts parts{.cluster = cluster};
  TROUPE_ASSIGN_OR_RETURN(parts.id, RandomHex(kIdBytes));
  TROUPE_ASSIGN_OR_RETURN(parts.secret, RandomHex(kSecretBytes));
  return parts;
}

std::string UserTokenText(const UserTokenParts& parts) {
  return fmt::format("{0}{1}{2}{1}{3}{1}{4}", kKind, kSeparator, parts.cluster, parts.id,
                     parts.secret);
}

StatusOr<UserTokenParts> ParseUserToken(std::string_view text) {
  std::vector<std::string_view> fields;
  for (std::string_view rest = text;;) {
    const size_t end = rest.find(kSeparator);
    fields.push_back(rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (fields.size() != 4 || fields[0] != kKind || !CheckIdentityName("CLUSTER", fields[1]).ok() ||
      !IsHex(fields[2], kIdBytes) || !IsHex(fields[3], kSecretBytes)) {
    return InvalidArgument(
        "it does not have the form troupe~CLUSTER~ID~SECRET of a whole token, with {} and {} "
        "hexadecimal digits at the end",
        2 * kIdBytes, 2 * kSecretBytes);
  }
  return UserTokenParts{std::string(fields[1]), std::string(fields[2]), std::string(fields[3])};
}

std::string HashOfSecret(std::string_view secret) {
  std::array<unsigned char, 32> digest{};
  unsigned length = 0;
  TROUPE_CHECK(EVP_Digest(secret.data(), secret.size(), digest.data(), &length, EVP_sha256(),
                          nullptr) == 1 &&
                   length == digest.size(),
               "SHA-256 gave {} bytes", length);
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

bool AreEqualHashes(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

StatusOr<std::string> ReadTokenFile(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return ErrnoStatus(errno, fmt::format("open {}", path));
  StatusOr<std::string> text = ReadOwnFile(descriptor, path);
  close(descriptor);
  TROUPE_RETURN_IF_ERROR(text.status());
  constexpr std::string_view kSpace = " \t\r\n";
  text->erase(0, std::min(text->find_first_not_of(kSpace), text->size()));
  text->erase(text->find_last_not_of(kSpace) + 1);
  TROUPE_RETURN_IF_ERROR(Annotate(ParseUserToken(*text).status(), path));
  return text;
}

}  // namespace troupe
