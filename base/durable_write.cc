#include "base/durable_write.h"

#include <memory>

#include "base/check.h"
#include "base/failpoint.h"

namespace troupe {
namespace {

Status HitStep(std::string_view failpoints, std::string_view step) {
  if (!AnyFailpointArmed()) return OkStatus();
  return HitFailpoint(fmt::format("{}.{}", failpoints, step));
}

Status SyncFile(WritableFile& file) { return file.Sync(); }
Status SyncFile(StreamingFile& file) { return file.Finish(); }

// Fills the temporary file that was just created, makes its bytes durable and closes it.
template <typename File>
Status FillTemporary(File& file, std::string_view failpoints,
                     const std::function<Status(File&)>& fill) {
  TROUPE_RETURN_IF_ERROR(HitStep(failpoints, "created"));
  TROUPE_RETURN_IF_ERROR(fill(file));
  TROUPE_RETURN_IF_ERROR(HitStep(failpoints, "written"));
  TROUPE_RETURN_IF_ERROR(SyncFile(file));
  TROUPE_RETURN_IF_ERROR(file.Close());
  return HitStep(failpoints, "synced");
}

// Makes the renames in the folder of `path` durable.
Status SyncFolderOf(FileSystem& files, const std::string& path, std::string_view failpoints) {
  TROUPE_RETURN_IF_ERROR(HitStep(failpoints, "renamed"));
  TROUPE_RETURN_IF_ERROR(files.SyncDirectory(ParentDirectory(path)));
  return HitStep(failpoints, "durable");
}

// The temporary files of the first `created` new files were created, and the first `renamed` of
// them have their final names.
struct Progress {
  size_t created = 0;
  size_t renamed = 0;
};

Status WriteAndRename(FileSystem& files, std::span<const NewFile> news,
                      const DurableWriteOptions& options, Progress* progress) {
  for (const NewFile& file : news) {
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> temporary,
                            files.Create(file.path + options.suffix, file.mode));
    ++progress->created;
    TROUPE_RETURN_IF_ERROR(FillTemporary<WritableFile>(
        *temporary, options.failpoints,
        [&file](WritableFile& opened) { return opened.Append(file.bytes); }));
  }
  for (const NewFile& file : news) {
    TROUPE_RETURN_IF_ERROR(files.Rename(file.path + options.suffix, file.path));
    ++progress->renamed;
  }
  return OkStatus();
}

}  // namespace

Status WriteFilesDurably(FileSystem& files, std::span<const NewFile> news,
                         const DurableWriteOptions& options) {
  TROUPE_CHECK(!news.empty());
  Progress progress;
  const Status status = WriteAndRename(files, news, options, &progress);
  if (status.ok()) return SyncFolderOf(files, news.front().path, options.failpoints);
  if (!options.removes_temporary) return status;
  for (size_t i = progress.renamed; i < progress.created; ++i)
    files.Remove(news[i].path + options.suffix).IgnoreError();
  return status;
}

Status WriteFileDurably(FileSystem& files, const NewFile& file,
                        const DurableWriteOptions& options) {
  return WriteFilesDurably(files, std::span(&file, 1), options);
}

Status StreamFileDurably(FileSystem& files, const std::string& path,
                         const StreamingOptions& streaming, std::string_view failpoints,
                         const std::function<Status(StreamingFile&)>& fill) {
  const std::string temporary = path + ".tmp";
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<StreamingFile> file,
                          files.CreateStreaming(temporary, streaming));
  TROUPE_RETURN_IF_ERROR(FillTemporary(*file, failpoints, fill));
  TROUPE_RETURN_IF_ERROR(files.Rename(temporary, path));
  return SyncFolderOf(files, path, failpoints);
}

}  // namespace troupe
