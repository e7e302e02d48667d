// The folder in which jobs keep their checkpoints (`checkpoint.folder`). Its identity lets a host
// distinguish it from an empty directory or another disk mounted at the same path; tokens let hosts
// prove to each other that they see the same folder.
//
// An identity is a random number; the folder has it while it contains an empty file of that name. A
// folder may have several: jobs that start at the same time in a new folder may each add one, and
// all of them are equally valid. No lock or atomic rewrite is therefore needed.
#ifndef TROUPE_CHECKPOINT_FORMAT_FOLDER_H_
#define TROUPE_CHECKPOINT_FORMAT_FOLDER_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

// Whether a call to write there has failed with ENOSPC or EDQUOT. Memory that cannot be allocated
// has the same code.
bool SaysFolderIsFull(const Status& status);

// Whether a call to write there has failed with EROFS. A missing right to write has the same code.
bool SaysFolderIsReadOnly(const Status& status);

// Returns FOLDER for "FOLDER/JOB/ATTEMPT".
std::string FolderOfAttempt(const std::string& attempt_path);

// Returns 128 random bits as hexadecimal digits.
StatusOr<std::string> RandomFolderId();

// Returns the folder's identity if it has one; otherwise durably gives it `fresh` and returns that.
// Creates the folder if it is absent. REQUIRES: `fresh` is from RandomFolderId.
StatusOr<std::string> EstablishFolderId(FileSystem& files, const std::string& folder,
                                        const std::string& fresh);

// Returns OK if `id` is empty or the folder has it. Otherwise UNAVAILABLE names the folder and the
// missing file: another disk, or none, is mounted there. Also returns errors of the file system.
Status CheckFolderId(FileSystem& files, const std::string& folder, const std::string& id);

// Returns an identity of the folder, or an empty string if it has none.
StatusOr<std::string> FindFolderId(FileSystem& files, const std::string& folder);

// FOLDER/.troupe-folder-ID, the file by which the folder has the identity; the folder itself where
// `id` is empty.
std::string FolderIdPath(const std::string& folder, std::string_view id);

struct IdentifiedFolder {
  std::string folder;
  std::string id;  // empty: not known
};
// Splits a path that FolderIdPath has returned.
IdentifiedFolder SplitFolderIdPath(const std::string& path);

// ".start-JOB-epoch-E-rank-R-RANDOM".
std::string FolderTokenName(std::string_view job, uint64_t group_epoch, int rank,
                            std::string_view random);

// Creates the empty file `token` in the folder. Creates the folder if it is absent.
Status PutFolderToken(FileSystem& files, const std::string& folder, const std::string& token);

// Returns whether the file exists. Errors of the file system, other than that it does not exist.
StatusOr<bool> SeesFolderToken(FileSystem& files, const std::string& folder,
                               const std::string& token);

// Removes those of `tokens` that exist and belong to a job of that name. A job of another cluster
// may have the same name, folder and group epoch; its tokens are not in `tokens`.
Status RemoveFolderTokens(FileSystem& files, const std::string& folder, std::string_view job,
                          const std::vector<std::string>& tokens);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_FORMAT_FOLDER_H_
