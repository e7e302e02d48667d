// The folder under which jobs keep their checkpoints (`checkpoint.folder`): its identity, by which
// a host tells it from an empty directory or another disk at the same path, and the tokens by which
// hosts prove to one another that they see the same one.
//
// An identity is a random number; the folder has it while it holds an empty file of that name. A
// folder may have several: jobs that start at once in a new one may each give it its own, and every
// one of them is as good. So nothing here needs a lock or an atomic rewrite.
#ifndef TROUPE_CHECKPOINT_FOLDER_H_
#define TROUPE_CHECKPOINT_FOLDER_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

// FOLDER of "FOLDER/JOB/ATTEMPT".
std::string FolderOfAttempt(const std::string& attempt_path);

// 128 random bits in hexadecimal digits.
StatusOr<std::string> RandomFolderId();

// An identity of the folder: the one that it has, or `fresh`, which it is given durably; the folder
// is made where it is absent. REQUIRES: `fresh` is of RandomFolderId.
StatusOr<std::string> EstablishFolderId(FileSystem& files, const std::string& folder,
                                        const std::string& fresh);

// OK if `id` is empty or the folder has it. UNAVAILABLE naming the folder and the file that it
// lacks otherwise: here another disk, or none, is mounted in its place. Errors of the file system.
Status CheckFolderId(FileSystem& files, const std::string& folder, const std::string& id);

// An identity of the folder, empty where it has none.
StatusOr<std::string> FindFolderId(FileSystem& files, const std::string& folder);

// FOLDER/.troupe-folder-ID, the file by which the folder has the identity; the folder itself where
// `id` is empty.
std::string FolderIdPath(const std::string& folder, std::string_view id);

struct IdentifiedFolder {
  std::string folder;
  std::string id;  // empty: not known
};
// What FolderIdPath has put together.
IdentifiedFolder SplitFolderIdPath(const std::string& path);

// ".start-JOB-epoch-E-rank-R-RANDOM".
std::string FolderTokenName(std::string_view job, uint64_t group_epoch, int rank,
                            std::string_view random);

// Makes the empty file `token` in the folder, which is made where it is absent.
Status PutFolderToken(FileSystem& files, const std::string& folder, const std::string& token);

// Whether the file is there. Errors of the file system other than that it is not.
StatusOr<bool> SeesFolderToken(FileSystem& files, const std::string& folder,
                               const std::string& token);

// Removes those of `tokens` that are there and are of a job of that name. A job of another cluster
// may have the same name, folder and group epoch: its tokens are not among them.
Status RemoveFolderTokens(FileSystem& files, const std::string& folder, std::string_view job,
                          const std::vector<std::string>& tokens);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_FOLDER_H_
