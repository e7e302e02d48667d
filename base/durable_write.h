// Durable writes of whole files: after an error, or a crash at any point, a path has its former
// file (or none) or the new one, never a part.
//
// A write creates a temporary file next to the path, fills it, syncs and closes it, renames it to
// the path, and syncs the folder. On return it is durable. An error after the rename leaves the new
// file, which a crash of the host may still replace by the former one.
//
// Each step is followed by a failpoint (base/failpoint.h) of the set that the write names:
//
//   SET.created   the temporary file is created, nothing is written
//   SET.written   all bytes are written, not synced
//   SET.synced    the temporary file is synced and closed, not renamed
//   SET.renamed   renamed, the folder is not synced
//   SET.durable   the folder is synced
//
// Thread-safe, except that writes of one path at the same time need different suffixes.
#ifndef TROUPE_BASE_DURABLE_WRITE_H_
#define TROUPE_BASE_DURABLE_WRITE_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"
#include "base/streaming_file.h"

namespace troupe {

struct DurableWriteOptions {
  std::string_view failpoints = "file";  // the set
  std::string suffix = ".tmp";           // the temporary file is the path with it
  // Removes the temporary file after an error. If false, it stays; a later write with
  // CreateMode::kTruncate and the same suffix replaces it.
  bool removes_temporary = false;
};

struct NewFile {
  std::string path;
  std::span<const std::byte> bytes;
  CreateMode mode = CreateMode::kTruncate;  // creates the temporary file
};

// Replaces the path by the new file.
Status WriteFileDurably(FileSystem& files, const NewFile& file,
                        const DurableWriteOptions& options = {});
inline Status WriteFileDurably(FileSystem& files, const std::string& path,
                               std::span<const std::byte> bytes) {
  return WriteFileDurably(files, {.path = path, .bytes = bytes});
}

// Replaces all of `news`, which are in one folder. Each path is renamed in the given order, once
// all temporary files are synced: a full disk leaves all former files. After a crash or an error
// the first of them may be new and the others old. REQUIRES: `news` is not empty.
Status WriteFilesDurably(FileSystem& files, std::span<const NewFile> news,
                         const DurableWriteOptions& options = {});

// Writes `path` as a file of streaming.size_bytes, which `fill` writes. ALREADY_EXISTS if there is
// a temporary file; after an error it stays.
Status StreamFileDurably(FileSystem& files, const std::string& path,
                         const StreamingOptions& streaming, std::string_view failpoints,
                         const std::function<Status(StreamingFile&)>& fill);

}  // namespace troupe

#endif  // TROUPE_BASE_DURABLE_WRITE_H_
