#include "base/security/authority_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/file_system.h"
#include "base/security/authority.h"
#include "base/security/tls_files.h"
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

StatusOr<Identity> IdentityOf(const IssueRequest& request, const CertifiedKey& authority) {
  TROUPE_RETURN_IF_ERROR(CheckIdentityName("the name", request.name));
  const bool is_server = request.role == Role::kCoordinator || request.role == Role::kWorker;
  if (!request.hosts.empty() && !is_server) {
    return InvalidArgument(
        "the role {} has no use for the host {}: only coordinators and workers are servers",
        RoleName(request.role), request.hosts[0]);
  }
  TROUPE_ASSIGN_OR_RETURN(std::string cluster, ClusterOf(authority));
  return Identity{std::move(cluster), request.role, request.name};
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

StatusOr<CertificateFacts> IssueTlsDirectory(const std::string& authority_directory,
                                             const IssueRequest& request, const std::string& output,
                                             int64_t now_seconds) {
  CertifiedKey authority;
  const std::string certificate_path = JoinPath(authority_directory, "authority.pem");
  TROUPE_ASSIGN_OR_RETURN(authority.certificate, ReadAuthorityFile(certificate_path));
  TROUPE_ASSIGN_OR_RETURN(authority.key,
                          ReadAuthorityFile(JoinPath(authority_directory, "authority.key")));
  TROUPE_ASSIGN_OR_RETURN(const std::string trusted,
                          ReadAuthorityFile(JoinPath(authority_directory, "ca.pem")));
  const StatusOr<Identity> identity = IdentityOf(request, authority);
  TROUPE_RETURN_IF_ERROR(identity.status());
  const std::string directory = WithoutTrailingSlashes(output);
  TROUPE_ASSIGN_OR_RETURN(const bool renews, HoldsOlder(directory, *identity));
  const StatusOr<CertifiedKey> made =
      SignCertificate(authority, {.common_name = request.name,
                                  .uris = {ToUri(*identity)},
                                  .hosts = request.hosts,
                                  .not_before = now_seconds - kMostClockSkew,
                                  .not_after = now_seconds + request.days * kSecondsOfDay});
  if (!made.ok()) return Annotate(made.status(), certificate_path);
  // The new contents must pass the check of those who will use them.
  TlsFiles files = TlsFilesIn(directory);
  const TlsContents contents{trusted, made->certificate, made->key};
  TROUPE_RETURN_IF_ERROR(CheckTlsContents(files, contents, now_seconds).status());
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
  return ReadCertificate(made->certificate);
}

}  // namespace troupe
