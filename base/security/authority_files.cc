#include "base/security/authority_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/durable_write.h"
#include "base/file_system.h"
#include "base/security/former_pairs.h"
#include "base/security/join_token.h"

namespace troupe {
namespace {

constexpr int64_t kMostAuthorityBytes = int64_t{1} << 20;
constexpr CreateMode kPublic = CreateMode::kExclusive;
constexpr CreateMode kSecret = CreateMode::kExclusiveOfOwner;

// The longest wait for another process that replaces the files of a directory.
constexpr std::chrono::seconds kLockLimit{30};
constexpr std::chrono::milliseconds kLockPoll{5};

// Makes other writers of the files of a directory wait. Holds nothing if the directory does not
// exist, or is on a file system without such locks.
class DirectoryLock {
 public:
  // DEADLINE_EXCEEDED if another process holds the lock for longer than kLockLimit.
  static StatusOr<DirectoryLock> Acquire(const std::string& directory) {
    DirectoryLock lock(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (lock.descriptor_ < 0) return lock;
    const auto end = std::chrono::steady_clock::now() + kLockLimit;
    while (flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      if (std::chrono::steady_clock::now() > end) {
        return DeadlineExceeded("{}: another process has replaced its files for {} s", directory,
                                kLockLimit.count());
      }
      std::this_thread::sleep_for(kLockPoll);
    }
    return lock;
  }

  DirectoryLock(DirectoryLock&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ~DirectoryLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }

 private:
  explicit DirectoryLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// A file of a directory, with its contents and who may read it.
struct StoredFile {
  std::string path;
  std::string contents;
  CreateMode mode;
};

Status RemoveIfPresent(const std::string& path) {
  return unlink(path.c_str()) == 0 || errno == ENOENT ? OkStatus()
                                                      : ErrnoStatus(errno, "remove " + path);
}

// The end of the names of temporary files, by which FinishTlsDirectory knows them.
constexpr char kTemporarySuffix[] = ".new";
std::string TemporaryNameOf(const std::string& path) { return path + kTemporarySuffix; }

// Replaces the files one after the other, each atomically. All are written before the first is
// replaced, so that a full disk leaves the former ones.
Status ReplaceFiles(const std::vector<StoredFile>& files) {
  std::vector<NewFile> news;
  for (const StoredFile& file : files) {
    TROUPE_RETURN_IF_ERROR(RemoveIfPresent(TemporaryNameOf(file.path)));
    news.push_back({file.path, AsBytes(file.contents), file.mode});
  }
  PosixFileSystem system;
  return WriteFilesDurably(system, news, {.suffix = kTemporarySuffix, .removes_temporary = true});
}

// Writes `files`, whose paths are names in `directory`. The directory is new or empty: a new one
// appears with all of them.
Status FillDirectory(const std::string& directory, std::vector<StoredFile> files) {
  PosixFileSystem system;
  const auto entries = system.List(directory);
  if (entries.ok()) {
    if (!entries->empty()) return AlreadyExists("{} exists and is not empty", directory);
    for (StoredFile& file : files) file.path = JoinPath(directory, file.path);
    return ReplaceFiles(files);
  }
  if (entries.status().code() != StatusCode::kNotFound) return entries.status();
  const std::string parent = ParentDirectory(directory);
  TROUPE_RETURN_IF_ERROR(MakeDirectories(system, parent));
  std::string temporary = directory + ".XXXXXX";
  if (mkdtemp(temporary.data()) == nullptr) return ErrnoStatus(errno, "create " + temporary);
  for (StoredFile& file : files) file.path = JoinPath(temporary, file.path);
  Status status = ReplaceFiles(files);
  if (status.ok()) status = system.Rename(temporary, directory);
  if (status.ok()) return system.SyncDirectory(parent);
  for (const StoredFile& file : files) RemoveIfPresent(file.path).IgnoreError();
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

// INVALID_ARGUMENT unless a file can be made in `directory`, or in the one of its parents that
// exists if it does not.
Status CheckWritable(std::string directory) {
  PosixFileSystem system;
  StatusOr<FileInfo> info = system.Stat(directory, SymbolicLinks::kFollow);
  while (info.status().code() == StatusCode::kNotFound && directory != ParentDirectory(directory)) {
    directory = ParentDirectory(directory);
    info = system.Stat(directory, SymbolicLinks::kFollow);
  }
  std::string trial = JoinPath(directory, ".troupe.XXXXXX");
  if (mkdtemp(trial.data()) == nullptr) {
    return InvalidArgument("nothing can be written to {}: {}", directory,
                           Message(ErrnoStatus(errno, "create " + trial)));
  }
  rmdir(trial.c_str());
  return OkStatus();
}

// Stores the checked contents as StoreTlsDirectory describes.
Status StoreOnce(const std::string& directory, const Identity& identity,
                 const TlsContents& contents, int64_t now_seconds) {
  // A directory that holds a certificate exists, so that it is locked.
  TROUPE_ASSIGN_OR_RETURN(const bool renews, HoldsOlder(directory, identity));
  TROUPE_ASSIGN_OR_RETURN(const DirectoryLock lock, DirectoryLock::Acquire(directory));
  const TlsFiles files = TlsFilesIn(directory);
  if (renews) {
    std::vector<StoredFile> replaced;
    std::string former = NextFormerText(files, identity, contents.authority, now_seconds);
    if (!former.empty()) replaced.push_back({FormerPathOf(files), std::move(former), kSecret});
    replaced.push_back({files.key, contents.key, kSecret});
    replaced.push_back({files.certificate, contents.certificate, kPublic});
    replaced.push_back({files.authority, contents.authority, kPublic});
    return ReplaceFiles(replaced);
  }
  return FillDirectory(directory, {{"key.pem", contents.key, kSecret},
                                   {"cert.pem", contents.certificate, kPublic},
                                   {"ca.pem", contents.authority, kPublic}});
}

StatusOr<Identity> IdentityOf(const IssueRequest& request, const Authority& authority) {
  TROUPE_RETURN_IF_ERROR(CheckIdentityName("the name", request.name));
  const bool is_server = request.role == Role::kCoordinator || request.role == Role::kWorker;
  if (!request.hosts.empty() && !is_server) {
    return InvalidArgument(
        "the role {} has no use for the host {}: only coordinators and workers are servers",
        RoleName(request.role), request.hosts[0]);
  }
  for (const std::string& host : request.hosts) TROUPE_RETURN_IF_ERROR(CheckHost(host));
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

void WarnIfOthersMaySign(const std::string& directory) {
  WarnIfOthersMayRead(JoinPath(directory, "authority.key"));
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
  WarnIfOthersMaySign(authority_directory);
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
  TROUPE_RETURN_IF_ERROR(HoldsOlder(directory, identity).status());
  TROUPE_ASSIGN_OR_RETURN(const Identity made,
                          CheckTlsContents(TlsFilesIn(directory), contents, now_seconds));
  if (made != identity) {
    return InvalidArgument("the certificate is that of {}, not of {}", ToUri(made),
                           ToUri(identity));
  }
  Status stored = StoreOnce(directory, identity, contents, now_seconds);
  // Another process may have made the directory meanwhile.
  if (!stored.ok() && HoldsOlder(directory, identity).value_or(false))
    stored = StoreOnce(directory, identity, contents, now_seconds);
  TROUPE_RETURN_IF_ERROR(stored);
  return ReadCertificate(contents.certificate);
}

StatusOr<std::optional<Identity>> CheckTlsOutput(const std::string& output) {
  const std::string directory = WithoutTrailingSlashes(output);
  const std::string path = TlsFilesIn(directory).certificate;
  PosixFileSystem system;
  const auto text = ReadFile(system, path, kMostAuthorityBytes, SymbolicLinks::kFollow);
  if (text.ok()) {
    const StatusOr<CertificateFacts> older = ReadCertificate(*text);
    if (!older.ok()) {
      return AlreadyExists(
          "{} exists and is not a certificate: choose another directory or remove it", path);
    }
    TROUPE_RETURN_IF_ERROR(CheckWritable(directory));
    return older->identity;
  }
  if (text.status().code() != StatusCode::kNotFound)
    return InvalidArgument("{}", Message(text.status()));
  const auto entries = system.List(directory);
  if (!entries.ok() && entries.status().code() != StatusCode::kNotFound)
    return InvalidArgument("{}", Message(entries.status()));
  if (entries.ok() && !entries->empty())
    return AlreadyExists("{} exists and is not empty", directory);
  TROUPE_RETURN_IF_ERROR(CheckWritable(entries.ok() ? directory : ParentDirectory(directory)));
  return std::nullopt;
}

Status FinishTlsDirectory(const std::string& directory) {
  TROUPE_ASSIGN_OR_RETURN(const DirectoryLock lock,
                          DirectoryLock::Acquire(WithoutTrailingSlashes(directory)));
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
