#include "checkpoint/format/folder.h"

#include <sys/random.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <vector>

namespace troupe {
namespace {

constexpr std::string_view kIdPrefix = ".troupe-folder-";
constexpr size_t kIdDigits = 32;

std::string IdFileName(std::string_view id) { return fmt::format("{}{}", kIdPrefix, id); }

bool IsId(std::string_view text) {
  return text.size() == kIdDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string TokenPrefix(std::string_view job) { return fmt::format(".start-{}-epoch-", job); }

bool IsTokenOf(std::string_view job, std::string_view token) {
  const std::string prefix = TokenPrefix(job);
  if (!token.starts_with(prefix) || token.find('/') != std::string_view::npos) return false;
  uint64_t epoch = 0;
  const char* const end = token.data() + token.size();
  const auto [rest, error] = std::from_chars(token.data() + prefix.size(), end, epoch);
  return error == std::errc() && std::string_view(rest, end).starts_with("-rank-");
}

// OK if the file already exists: its name is the only content.
Status MakeEmptyFile(FileSystem& files, const std::string& path) {
  const auto made = files.Create(path, CreateMode::kExclusive);
  if (made.status().code() == StatusCode::kAlreadyExists) return OkStatus();
  TROUPE_RETURN_IF_ERROR(made.status());
  return (*made)->Close();
}

bool HasFailedWith(const Status& status, int error_number) {
  return Message(status).ends_with(Message(ErrnoStatus(error_number, "")));
}

StatusOr<bool> IsThere(FileSystem& files, const std::string& path) {
  const auto info = files.Stat(path, SymbolicLinks::kRefuse);
  if (info.status().code() == StatusCode::kNotFound) return false;
  TROUPE_RETURN_IF_ERROR(info.status());
  return info->kind == FileKind::kRegular;
}

}  // namespace

bool SaysFolderIsFull(const Status& status) {
  return status.code() == StatusCode::kResourceExhausted &&
         (HasFailedWith(status, ENOSPC) || HasFailedWith(status, EDQUOT));
}

bool SaysFolderIsReadOnly(const Status& status) {
  return status.code() == StatusCode::kPermissionDenied && HasFailedWith(status, EROFS);
}

std::string FolderOfAttempt(const std::string& attempt_path) {
  return ParentDirectory(ParentDirectory(attempt_path));
}

StatusOr<std::string> RandomFolderId() {
  uint64_t words[2] = {};
  if (getrandom(words, sizeof(words), 0) != static_cast<ssize_t>(sizeof(words))) {
    return ErrnoStatus(errno, "draw random numbers");
  }
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

StatusOr<std::string> FindFolderId(FileSystem& files, const std::string& folder) {
  const auto entries = files.List(folder);
  if (entries.status().code() == StatusCode::kNotFound) return std::string();
  TROUPE_RETURN_IF_ERROR(entries.status());
  for (const DirectoryEntry& entry : *entries) {
    const std::string_view name = entry.name;
    if (!name.starts_with(kIdPrefix) || entry.kind != FileKind::kRegular) continue;
    if (const std::string_view id = name.substr(kIdPrefix.size()); IsId(id)) return std::string(id);
  }
  return std::string();
}

StatusOr<std::string> EstablishFolderId(FileSystem& files, const std::string& folder,
                                        const std::string& fresh) {
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, folder));
  TROUPE_ASSIGN_OR_RETURN(const std::string found, FindFolderId(files, folder));
  if (!found.empty()) return found;
  TROUPE_RETURN_IF_ERROR(MakeEmptyFile(files, JoinPath(folder, IdFileName(fresh))));
  TROUPE_RETURN_IF_ERROR(files.SyncDirectory(folder));
  return fresh;
}

Status CheckFolderId(FileSystem& files, const std::string& folder, const std::string& id) {
  if (id.empty()) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const bool there, IsThere(files, JoinPath(folder, IdFileName(id))));
  if (there) return OkStatus();
  return Unavailable(
      "folder {} has no file {}, so it is not the folder with the job's checkpoints; another disk, "
      "or none, is mounted there on this host",
      folder, IdFileName(id));
}

std::string FolderIdPath(const std::string& folder, std::string_view id) {
  return id.empty() ? folder : JoinPath(folder, IdFileName(id));
}

IdentifiedFolder SplitFolderIdPath(const std::string& path) {
  const std::string folder = ParentDirectory(path);
  const std::string prefix = JoinPath(folder, kIdPrefix);
  if (!path.starts_with(prefix)) return {path, ""};
  return {folder, path.substr(prefix.size())};
}

std::string FolderTokenName(std::string_view job, uint64_t group_epoch, int rank,
                            std::string_view random) {
  return fmt::format("{}{}-rank-{}-{}", TokenPrefix(job), group_epoch, rank, random);
}

Status PutFolderToken(FileSystem& files, const std::string& folder, const std::string& token) {
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, folder));
  return MakeEmptyFile(files, JoinPath(folder, token));
}

StatusOr<bool> SeesFolderToken(FileSystem& files, const std::string& folder,
                               const std::string& token) {
  return IsThere(files, JoinPath(folder, token));
}

Status RemoveFolderTokens(FileSystem& files, const std::string& folder, std::string_view job,
                          const std::vector<std::string>& tokens) {
  for (const std::string& token : tokens) {
    if (!IsTokenOf(job, token)) continue;
    const Status removed = files.Remove(JoinPath(folder, token));
    if (!removed.ok() && removed.code() != StatusCode::kNotFound) return removed;
  }
  return OkStatus();
}

}  // namespace troupe
