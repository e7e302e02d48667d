#include "interop/tokenizer_files.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "base/text/printable.h"
#include "base/text_file.h"

namespace troupe {
namespace {

struct KnownFile {
  const char* name;
  bool has_vocabulary = false;
};

constexpr KnownFile kKnownFiles[] = {
    {.name = "tokenizer.json", .has_vocabulary = true},
    {.name = "tokenizer.model", .has_vocabulary = true},
    {.name = "tekken.json", .has_vocabulary = true},
    {.name = "spiece.model", .has_vocabulary = true},
    {.name = "vocab.json", .has_vocabulary = true},
    {.name = "vocab.txt", .has_vocabulary = true},
    {.name = "merges.txt"},
    {.name = "added_tokens.json"},
    {.name = "special_tokens_map.json"},
    {.name = "tokenizer_config.json"},
    {.name = "chat_template.jinja"},
    {.name = "chat_template.json"},
    {.name = "generation_config.json"},
};

// Chat templates in addition to the default one, a file each.
constexpr char kTemplateFolder[] = "additional_chat_templates";
constexpr std::string_view kTemplateEnd = ".jinja";
constexpr size_t kTemplatesMax = 64;

// OK if the file can be read, is no pointer of Git LFS, and has JSON or a model if its name ends
// so.
Status CheckContent(FileSystem& files, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file,
                          files.Open(path, SymbolicLinks::kFollow));
  const bool is_json = path.ends_with(".json");
  if (file->size() == 0 && (is_json || path.ends_with(".model")))
    return InvalidArgument("{} is empty", path);
  std::string begin(std::min(kGitLfsPointerBegin.size(), static_cast<size_t>(file->size())), '\0');
  TROUPE_RETURN_IF_ERROR(
      file->ReadAt(0, std::as_writable_bytes(std::span<char>(begin.data(), begin.size()))));
  if (IsGitLfsPointer(begin)) return Annotate(GitLfsPointerFault(), path);
  if (!is_json) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(files, path, kTokenizerFileBytesMax, SymbolicLinks::kFollow));
  return nlohmann::json::accept(text) ? OkStatus() : InvalidArgument("{} is not JSON", path);
}

// Returns whether `path` exists; an error if it does and cannot be copied.
StatusOr<bool> HasFile(FileSystem& files, const std::string& path) {
  const auto entry = files.Stat(path, SymbolicLinks::kRefuse);
  if (entry.status().code() == StatusCode::kNotFound) return false;
  TROUPE_RETURN_IF_ERROR(entry.status());
  const auto info = files.Stat(path, SymbolicLinks::kFollow);
  if (info.status().code() == StatusCode::kNotFound) {
    return InvalidArgument("{} is a symbolic link to a file that does not exist", path);
  }
  TROUPE_RETURN_IF_ERROR(info.status());
  if (info->kind != FileKind::kRegular) return InvalidArgument("{} is not a regular file", path);
  if (info->size_bytes > kTokenizerFileBytesMax) {
    return InvalidArgument("{} has {} bytes, above the limit of {}", path, info->size_bytes,
                           kTokenizerFileBytesMax);
  }
  TROUPE_RETURN_IF_ERROR(CheckContent(files, path));
  return true;
}

// Adds the chat templates in their own folder, if there is one.
Status AddTemplates(FileSystem& files, TokenizerFiles* found) {
  const std::string folder = JoinPath(found->directory, kTemplateFolder);
  const auto info = files.Stat(folder, SymbolicLinks::kFollow);
  if (info.status().code() == StatusCode::kNotFound) return OkStatus();
  TROUPE_RETURN_IF_ERROR(info.status());
  if (info->kind != FileKind::kDirectory) return InvalidArgument("{} is not a directory", folder);
  TROUPE_ASSIGN_OR_RETURN(const auto entries, files.List(folder));
  size_t templates = 0;
  for (const DirectoryEntry& entry : entries) {
    if (!entry.name.ends_with(kTemplateEnd)) continue;
    if (const std::string fault = TextFault(entry.name); !fault.empty()) {
      return InvalidArgument("{} has a file whose name {}", folder, fault);
    }
    if (++templates > kTemplatesMax) {
      return InvalidArgument("{} has more than {} chat templates", folder, kTemplatesMax);
    }
    TROUPE_RETURN_IF_ERROR(HasFile(files, JoinPath(folder, entry.name)).status());
    found->names.push_back(JoinPath(kTemplateFolder, entry.name));
  }
  return OkStatus();
}

Status CopyFile(FileSystem& files, const std::string& from, const std::string& to) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(files, from, kTokenizerFileBytesMax, SymbolicLinks::kFollow));
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                          files.Create(to, CreateMode::kExclusive));
  TROUPE_RETURN_IF_ERROR(file->Append(AsBytes(text)));
  TROUPE_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace

StatusOr<TokenizerFiles> FindTokenizerFiles(FileSystem& files, const std::string& directory) {
  TROUPE_ASSIGN_OR_RETURN(const FileInfo info, files.Stat(directory, SymbolicLinks::kFollow));
  if (info.kind != FileKind::kDirectory) return InvalidArgument("{} is a file", directory);
  TokenizerFiles found{.directory = directory, .names = {}};
  for (const KnownFile& known : kKnownFiles) {
    TROUPE_ASSIGN_OR_RETURN(const bool exists, HasFile(files, JoinPath(directory, known.name)));
    if (!exists) continue;
    found.names.emplace_back(known.name);
    found.has_tokenizer = found.has_tokenizer || known.has_vocabulary;
  }
  TROUPE_RETURN_IF_ERROR(AddTemplates(files, &found));
  return found;
}

std::string TokenizerFileNames() {
  std::string names;
  std::string_view last;
  for (const KnownFile& known : kKnownFiles) {
    if (!known.has_vocabulary) continue;
    if (!last.empty()) names += fmt::format("{}{}", names.empty() ? "" : ", ", last);
    last = known.name;
  }
  return fmt::format("{} or {}", names, last);
}

Status CopyTokenizerFiles(FileSystem& files, const TokenizerFiles& from, const std::string& to) {
  const std::string template_folder = JoinPath(to, kTemplateFolder);
  bool has_templates = false;
  for (const std::string& name : from.names) {
    if (!has_templates && name.find('/') != std::string::npos) {
      TROUPE_RETURN_IF_ERROR(files.MakeDirectory(template_folder));
      has_templates = true;
    }
    TROUPE_RETURN_IF_ERROR(CopyFile(files, JoinPath(from.directory, name), JoinPath(to, name)));
  }
  return has_templates ? files.SyncDirectory(template_folder) : OkStatus();
}

}  // namespace troupe
