#include "base/security/tls_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "base/file_system.h"
#include "base/log.h"
#include "base/security/certificate.h"

namespace troupe {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 20;

StatusOr<std::string> ReadTlsFile(const std::string& path) {
  PosixFileSystem files;
  // Volumes of secrets show their files as symbolic links.
  StatusOr<std::string> text = ReadFile(files, path, kMostBytes, SymbolicLinks::kFollow);
  if (!text.ok()) return InvalidArgument("{}: cannot be read: {}", path, Message(text.status()));
  if (text->empty()) return InvalidArgument("{}: the file is empty", path);
  return text;
}

}  // namespace

void WarnIfOthersMayRead(const std::string& key) {
  struct stat info {};
  if (stat(key.c_str(), &info) != 0 || (info.st_mode & S_IROTH) == 0) return;
  LogWarning("security", "{}: every user of this machine may read this private key (mode {:04o})",
             key, info.st_mode & 07777);
}

TlsFiles TlsFilesIn(const std::string& directory) {
  return {.authority = JoinPath(directory, "ca.pem"),
          .certificate = JoinPath(directory, "cert.pem"),
          .key = JoinPath(directory, "key.pem")};
}

StatusOr<TlsContents> ReadTlsContents(const TlsFiles& files) {
  TlsContents contents;
  TROUPE_ASSIGN_OR_RETURN(contents.authority, ReadTlsFile(files.authority));
  if (!files.has_certificate()) return contents;
  TROUPE_ASSIGN_OR_RETURN(contents.certificate, ReadTlsFile(files.certificate));
  TROUPE_ASSIGN_OR_RETURN(contents.key, ReadTlsFile(files.key));
  return contents;
}

StatusOr<Identity> CheckTlsContents(const TlsFiles& files, const TlsContents& contents,
                                    int64_t now_seconds) {
  const auto named = [](const std::string& path, const Status& status) {
    return status.ok() ? status : Annotate(status, path);
  };
  TROUPE_RETURN_IF_ERROR(named(files.authority, CheckCertificates(contents.authority)));
  if (!files.has_certificate()) return files.identity;
  const StatusOr<CertificateFacts> facts = ReadCertificate(contents.certificate);
  TROUPE_RETURN_IF_ERROR(named(files.certificate, facts.status()));
  TROUPE_RETURN_IF_ERROR(named(files.key, CheckKey(contents.key)));
  TROUPE_RETURN_IF_ERROR(named(files.key + " with " + files.certificate,
                               CheckKeyBelongs(contents.key, contents.certificate)));
  TROUPE_RETURN_IF_ERROR(named(files.certificate, CheckValidAt(*facts, now_seconds)));
  TROUPE_RETURN_IF_ERROR(named(
      files.certificate + " with " + files.authority,
      CheckSigned(contents.certificate, contents.authority, facts->identity.role, now_seconds)));
  return facts->identity;
}

std::string FormerPathOf(const TlsFiles& files) {
  return JoinPath(ParentDirectory(files.certificate), "former.pem");
}

std::vector<TlsContents> ReadFormerPairs(const TlsFiles& files, const std::string& authorities) {
  constexpr std::string_view kBegin = "-----BEGIN ", kCertificate = "-----BEGIN CERTIFICATE-----",
                             kKeyLabel = "PRIVATE KEY-----";
  const std::string text = ReadTlsFile(FormerPathOf(files)).value_or("");
  std::vector<TlsContents> pairs;
  size_t begin = text.find(kBegin);
  while (begin != std::string::npos) {
    size_t key = begin;  // the first block that is no certificate; a key may have parameters
    while (text.compare(key, kCertificate.size(), kCertificate) == 0) {
      key = text.find(kBegin, key + 1);
      if (key == std::string::npos) return pairs;
    }
    const size_t first_line = text.find(kKeyLabel, key);
    if (first_line == std::string::npos) return pairs;
    const size_t last_line = text.find(kKeyLabel, first_line + 1);
    if (last_line == std::string::npos) return pairs;
    const size_t end = last_line + kKeyLabel.size();
    std::string certificate = text.substr(begin, key - begin);
    certificate.erase(certificate.find_last_not_of('\n') + 1);
    pairs.push_back({authorities, certificate + "\n", text.substr(key, end - key) + "\n"});
    begin = text.find(kBegin, end);
  }
  return pairs;
}

StatusOr<UsableTls> ReadUsableTls(const TlsFiles& files, int64_t now_seconds) {
  TROUPE_ASSIGN_OR_RETURN(TlsContents contents, ReadTlsContents(files));
  const StatusOr<Identity> identity = CheckTlsContents(files, contents, now_seconds);
  if (identity.ok()) return UsableTls{std::move(contents), *identity, OkStatus()};
  if (!files.has_certificate()) return identity.status();
  const StatusOr<CertificateFacts> facts = ReadCertificate(contents.certificate);
  if (!facts.ok() || CheckValidAt(*facts, now_seconds).ok()) return identity.status();
  const std::string former_path = FormerPathOf(files);
  TlsFiles former_files = files;
  former_files.certificate = former_files.key = former_path;
  Status why = ReadTlsFile(former_path).status();
  if (why.ok()) why = InvalidArgument("{}: holds no certificate with its key", former_path);
  bool is_first = true;
  for (TlsContents& former : ReadFormerPairs(files, contents.authority)) {
    const StatusOr<Identity> holder = CheckTlsContents(former_files, former, now_seconds);
    if (holder.ok() && *holder == facts->identity)
      return UsableTls{std::move(former), *holder, identity.status()};
    if (!std::exchange(is_first, false)) continue;
    why = holder.ok()
              ? InvalidArgument("{}: is of another identity, {}", former_path, ToUri(*holder))
              : holder.status();
  }
  if (access(former_path.c_str(), F_OK) != 0) return identity.status();
  return InvalidArgument("{}; no former pair can be used instead: {}", Message(identity.status()),
                         Message(why));
}

StatusOr<TlsFiles> CheckTlsDirectory(const std::string& directory, int64_t now_seconds) {
  TlsFiles files = TlsFilesIn(directory);
  TROUPE_ASSIGN_OR_RETURN(const UsableTls usable, ReadUsableTls(files, now_seconds));
  files.identity = usable.identity;
  if (!usable.fault.ok())
    LogWarning("security", "{} is used instead: {}", FormerPathOf(files), Message(usable.fault));
  WarnIfOthersMayRead(files.key);
  return files;
}

StatusOr<TlsFiles> CheckAuthorityIn(const std::string& directory, const std::string& cluster) {
  TlsFiles files{.authority = TlsFilesIn(directory).authority, .identity = {.cluster = cluster}};
  TROUPE_ASSIGN_OR_RETURN(const TlsContents contents, ReadTlsContents(files));
  TROUPE_RETURN_IF_ERROR(CheckTlsContents(files, contents, 0).status());
  return files;
}

}  // namespace troupe
