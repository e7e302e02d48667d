#include "base/security/authority_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/file_system.h"
#include "base/security/join_token.h"
#include "base/text_file.h"

namespace troupe {
namespace {

constexpr int64_t kMostAuthorityBytes = int64_t{1} << 20;
constexpr mode_t kPublic = 0644;
constexpr mode_t kSecret = 0600;

struct NewFile {
  std::string path;
  std::string contents;
  mode_t mode;
};

// Writes the new file durably.
Status WriteNew(const NewFile& file) {
  const int fd =
      open(file.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, file.mode);
  if (fd < 0) return ErrnoStatus(errno, "create " + file.path);
  Status status = WriteText(fd, file.contents, file.path);
  if (status.ok() && fsync(fd) != 0) status = ErrnoStatus(errno, "sync " + file.path);
  close(fd);
  return status;
}

Status RemoveIfPresent(const std::string& path) {
  return unlink(path.c_str()) == 0 || errno == ENOENT ? OkStatus()
                                                      : ErrnoStatus(errno, "remove " + path);
}

std::string TemporaryNameOf(const std::string& path) { return path + ".new"; }

// Replaces the files one after the other, each atomically. All are written before the first is
// replaced, so that a full disk leaves the former ones.
Status ReplaceFiles(const std::string& directory, const std::vector<NewFile>& files) {
  PosixFileSystem system;
  Status status = OkStatus();
  for (const NewFile& file : files) {
    if (status.ok()) status = RemoveIfPresent(TemporaryNameOf(file.path));
    if (status.ok()) status = WriteNew({TemporaryNameOf(file.path), file.contents, file.mode});
  }
  for (const NewFile& file : files) {
    if (status.ok()) status = system.Rename(TemporaryNameOf(file.path), file.path);
  }
  if (status.ok()) return system.SyncDirectory(directory);
  for (const NewFile& file : files) RemoveIfPresent(TemporaryNameOf(file.path)).IgnoreError();
  return status;
}

// Writes `files`, whose paths are names in `directory`. The directory is new or empty: a new one
// appears with all of them.
Status FillDirectory(const std::string& directory, std::vector<NewFile> files) {
  PosixFileSystem system;
  const auto entries = system.List(directory);
  if (entries.ok()) {
    if (!entries->empty()) return AlreadyExists("{} exists and is not empty", directory);
    for (NewFile& file : files) file.path = JoinPath(directory, file.path);
    return ReplaceFiles(directory, files);
  }
  if (entries.status().code() != StatusCode::kNotFound) return entries.status();
  const std::string parent = ParentDirectory(directory);
  TROUPE_RETURN_IF_ERROR(MakeDirectories(system, parent));
  std::string temporary = directory + ".XXXXXX";
  if (mkdtemp(temporary.data()) == nullptr) return ErrnoStatus(errno, "create " + temporary);
  for (NewFile& file : files) file.path = JoinPath(temporary, file.path);
  Status status = ReplaceFiles(temporary, files);
  if (status.ok()) status = system.Rename(temporary, directory);
  if (status.ok()) return system.SyncDirectory(parent);
  for (const NewFile& file : files) RemoveIfPresent(file.path).IgnoreError();
  rmdir(temporary.c_str());
  return status;
}

std::string WithoutTrailingSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

StatusOr<std::string> ReadAuthorityFile(const std::string& path) {
  PosixFileSystem system;
  StatusOr<std::string> text = ReadFile(system, path, kMostAuthorityBytes, SymbolicLinks::kFollow);
  if (text.ok() && text->empty()) return InvalidArgument("{}: the file is empty", path);
  if (text.ok()) return text;
  return InvalidArgument("{}: cannot be read: {} (`troupe certs init` makes an authority)", path,
                         Message(text.status()));
}

// Returns whether `output` holds a certificate of `identity`. ALREADY_EXISTS if it holds another.
StatusOr<bool> HoldsOlder(const std::string& output, const Identity& identity) {
  PosixFileSystem system;
  const std::string path = TlsFilesIn(output).certificate;
  const auto text = ReadFile(system, path, kMostAuthorityBytes, SymbolicLinks::kFollow);
  if (text.status().code() == StatusCode::kNotFound) return false;
  TROUPE_RETURN_IF_ERROR(text.status());
  const StatusOr<CertificateFacts> older = ReadCertificate(*text);
  if (older.ok() && older->identity == identity) return true;
  return AlreadyExists(
      "{} exists and is not a certificate of {}: choose another directory or remove it", path,
      ToUri(identity));
}

StatusOr<Identity> IdentityOf(const IssueRequest& request, const Authority& authority) {
  TROUPE_RETURN_IF_ERROR(CheckIdentityName("the name", request.name));
  const bool is_server = request.role == Role::kCoordinator || request.role == Role::kWorker;
  if (!request.hosts.empty() && !is_server) {
    return InvalidArgument(
        "the role {} has no use for the host {}: only coordinators and workers are servers",
        RoleName(request.role), request.hosts[0]);
  }
  return Identity{authority.cluster, request.role, request.name};
}

}  // namespace

Status WriteNewAuthority(const std::string& directory, const std::string& cluster,
                         int64_t now_seconds) {
  TROUPE_ASSIGN_OR_RETURN(const CertifiedKey authority, MakeAuthority(cluster, now_seconds));
  return FillDirectory(WithoutTrailingSlashes(directory),
                       {{"authority.key", authority.key, kSecret},
                        {"authority.pem", authority.certificate, kPublic},
                        {"ca.pem", authority.certificate, kPublic}});
}

StatusOr<Authority> ReadAuthority(const std::string& directory) {
  const std::string certificate = JoinPath(directory, "authority.pem");
  const std::string key = JoinPath(directory, "authority.key");
  const std::string trusted = JoinPath(directory, "ca.pem");
  Authority authority;
  TROUPE_ASSIGN_OR_RETURN(authority.signer.certificate, ReadAuthorityFile(certificate));
  TROUPE_ASSIGN_OR_RETURN(authority.signer.key, ReadAuthorityFile(key));
  TROUPE_ASSIGN_OR_RETURN(authority.trusted, ReadAuthorityFile(trusted));
  if (const Status whole = CheckCertificates(authority.signer.certificate); !whole.ok())
    return Annotate(whole, certificate);
  if (const Status whole = CheckKey(authority.signer.key); !whole.ok()) return Annotate(whole, key);
  const auto end = CheckAuthority(authority.signer);
  if (!end.ok()) return Annotate(end.status(), key + " with " + certificate);
  authority.not_after = *end;
  const auto cluster = ClusterOf(authority.signer);
  if (!cluster.ok()) return Annotate(cluster.status(), certificate);
  authority.cluster = *cluster;
  TROUPE_ASSIGN_OR_RETURN(authority.hash, CertificateHash(authority.signer.certificate));
  const auto listed = CertificateWithHash(authority.trusted, authority.hash);
  if (listed.ok()) return authority;
  if (listed.status().code() != StatusCode::kNotFound) return Annotate(listed.status(), trusted);
  return InvalidArgument(
      "{}: it does not have the authority of {}, so no authority vouches for "
      "its certificates",
      trusted, certificate);
}

StatusOr<CertificateFacts> IssueTlsDirectory(const std::string& authority_directory,
                                             const IssueRequest& request, const std::string& output,
                                             int64_t now_seconds) {
  TROUPE_ASSIGN_OR_RETURN(const Authority authority, ReadAuthority(authority_directory));
  TROUPE_ASSIGN_OR_RETURN(const Identity identity, IdentityOf(request, authority));
  TROUPE_RETURN_IF_ERROR(HoldsOlder(WithoutTrailingSlashes(output), identity).status());
  const StatusOr<CertifiedKey> made = SignCertificate(
      authority.signer, {.common_name = request.name,
                         .uris = {ToUri(identity)},
                         .hosts = request.hosts,
                         .not_before = now_seconds - (request.from_now ? 0 : kMostClockSkew),
                         .not_after = now_seconds + request.days * kSecondsOfDay});
  if (!made.ok()) return Annotate(made.status(), JoinPath(authority_directory, "authority.pem"));
  return StoreTlsDirectory(output, identity, {authority.trusted, made->certificate, made->key},
                           now_seconds);
}

StatusOr<CertificateFacts> StoreTlsDirectory(const std::string& output, const Identity& identity,
                                             const TlsContents& contents, int64_t now_seconds) {
  const std::string directory = WithoutTrailingSlashes(output);
  TROUPE_ASSIGN_OR_RETURN(const bool renews, HoldsOlder(directory, identity));
  const TlsFiles files = TlsFilesIn(directory);
  TROUPE_ASSIGN_OR_RETURN(const Identity made, CheckTlsContents(files, contents, now_seconds));
  if (made != identity) {
    return InvalidArgument("the certificate is that of {}, not of {}", ToUri(made),
                           ToUri(identity));
  }
  if (renews) {
    TROUPE_RETURN_IF_ERROR(
        ReplaceFiles(directory, {{files.key, contents.key, kSecret},
                                 {files.certificate, contents.certificate, kPublic},
                                 {files.authority, contents.authority, kPublic}}));
  } else {
    TROUPE_RETURN_IF_ERROR(FillDirectory(directory, {{"key.pem", contents.key, kSecret},
                                                     {"cert.pem", contents.certificate, kPublic},
                                                     {"ca.pem", contents.authority, kPublic}}));
  }
  return ReadCertificate(contents.certificate);
}

Status FinishTlsDirectory(const std::string& directory) {
  const TlsFiles files = TlsFilesIn(WithoutTrailingSlashes(directory));
  const std::string waiting = TemporaryNameOf(files.certificate);
  PosixFileSystem system;
  const auto read = [&](const std::string& path) {
    return ReadFile(system, path, kMostAuthorityBytes, SymbolicLinks::kFollow);
  };
  const auto key = read(files.key);
  const auto certificate = read(files.certificate);
  const auto next = read(waiting);
  if (!key.ok() || !certificate.ok() || !next.ok()) return OkStatus();
  const auto has_key = [&key](const std::string& pem) {
    return CheckKey(*key).ok() && CheckCertificates(pem).ok() && CheckKeyBelongs(*key, pem).ok();
  };
  if (has_key(*certificate) || !has_key(*next)) return OkStatus();
  const std::string authority = TemporaryNameOf(files.authority);
  if (system.Stat(authority, SymbolicLinks::kRefuse).ok())
    TROUPE_RETURN_IF_ERROR(system.Rename(authority, files.authority));
  TROUPE_RETURN_IF_ERROR(system.Rename(waiting, files.certificate));
  return system.SyncDirectory(ParentDirectory(files.certificate));
}

}  // namespace troupe
