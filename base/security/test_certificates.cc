#include "base/security/test_certificates.h"

#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "base/file_system.h"

namespace troupe {
namespace {

CertifiedKey ValueOf(StatusOr<CertifiedKey> made) {
  TROUPE_CHECK_OK(made.status());
  return *std::move(made);
}

}  // namespace

TestAuthority::TestAuthority(const std::string& cluster)
    : cluster_(cluster), authority_(ValueOf(MakeAuthority(cluster, std::time(nullptr)))) {}

CertifiedKey TestAuthority::Issue(Role role, const std::string& name) const {
  const int64_t now = std::time(nullptr);
  return IssueWith({ToUri({cluster_, role, name})}, now - kMostClockSkew, now + kTestDay);
}

CertifiedKey TestAuthority::IssueWith(const std::vector<std::string>& uris, int64_t begin,
                                      int64_t end) const {
  return ValueOf(SignCertificate(
      authority_, {.common_name = "test", .uris = uris, .not_before = begin, .not_after = end}));
}

void WriteTlsDirectory(const std::string& directory, std::string_view authorities,
                       const CertifiedKey& holder) {
  PosixFileSystem system;
  TROUPE_CHECK_OK(MakeDirectories(system, directory));
  const TlsFiles files = TlsFilesIn(directory);
  WriteTextFile(files.authority, authorities);
  WriteTextFile(files.certificate, holder.certificate);
  WriteTextFile(files.key, holder.key);
  TROUPE_CHECK(chmod(files.key.c_str(), 0600) == 0);
}

void WriteTextFile(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".tmp";
  std::ofstream(temporary, std::ios::binary) << text;
  std::filesystem::rename(temporary, path);
}

}  // namespace troupe
