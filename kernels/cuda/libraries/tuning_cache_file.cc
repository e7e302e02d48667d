#include "kernels/cuda/libraries/tuning_cache_file.h"

#include <cctype>
#include <utility>

#include "base/log.h"
#include "kernels/backend/replace_file.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{16} << 20;

std::string TitleOf(const TuningKind& kind) { return fmt::format("troupe {} tuning 1", kind.name); }

std::string HeaderOf(const TuningKind& kind, const TuningOwner& owner) {
  return fmt::format("{}\ndevice {}\nlibrary {}\n", TitleOf(kind), owner.device, owner.library);
}

}  // namespace

std::string FormatTuningEntries(const TuningKind& kind, const TuningOwner& owner,
                                const TuningEntries& lines) {
  std::string text = HeaderOf(kind, owner);
  for (const auto& [key, value] : lines) text += fmt::format("{}: {}\n", key, value);
  return text;
}

StatusOr<TuningEntries> ParseTuningEntries(const TuningKind& kind, const TuningOwner& owner,
                                           std::string_view text) {
  const std::string header = HeaderOf(kind, owner);
  if (!text.starts_with(header)) {
    if (!text.starts_with(TitleOf(kind)))
      return InvalidArgument("line 1 is not \"{}\"", TitleOf(kind));
    return FailedPrecondition("it was made for a device or library other than {} with {}",
                              owner.device, owner.library);
  }
  // Rejected because a truncated line could still be read as an entry.
  if (!text.ends_with('\n')) return InvalidArgument("the last line is incomplete");
  text.remove_prefix(header.size());
  TuningEntries lines;
  for (int number = 4; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    const size_t colon = line.find(": ");
    if (colon == std::string_view::npos ||
        !kind.is_entry(line.substr(0, colon), line.substr(colon + 2))) {
      return InvalidArgument("line {} is not an entry", number);
    }
    if (!lines.emplace(line.substr(0, colon), line.substr(colon + 2)).second) {
      return InvalidArgument("line {} has a second entry for its shape", number);
    }
  }
  return lines;
}

std::string TuningCacheFileName(const TuningKind& kind, const TuningOwner& owner) {
  std::string device;
  for (const char c : owner.device) {
    device += std::isalnum(static_cast<unsigned char>(c))
                  ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                  : '-';
  }
  return fmt::format("{}-tuning-{}-{}.txt", kind.name, device, owner.library);
}

TuningCacheFile::TuningCacheFile(FileSystem& files, std::string folder, TuningKind kind,
                                 TuningOwner owner)
    : files_(files), folder_(std::move(folder)), kind_(std::move(kind)), owner_(std::move(owner)) {
  Read();
}

void TuningCacheFile::Read() {
  if (folder_.empty()) return;
  const std::string path = JoinPath(folder_, TuningCacheFileName(kind_, owner_));
  const StatusOr<std::string> text = ReadFile(files_, path, kMaxFileBytes, SymbolicLinks::kFollow);
  if (text.status().code() == StatusCode::kNotFound) return;
  StatusOr<TuningEntries> read =
      text.ok() ? ParseTuningEntries(kind_, owner_, *text) : StatusOr<TuningEntries>(text.status());
  if (!read.ok()) {
    LogWarning("cuda", "{} is not used and will be rewritten: {}", path, ToString(read.status()));
    return;
  }
  // Entries of this process take precedence within it.
  lines_.merge(*read);
}

std::optional<std::string> TuningCacheFile::Find(const std::string& key) const {
  const auto found = lines_.find(key);
  if (found == lines_.end()) return std::nullopt;
  return found->second;
}

void TuningCacheFile::Add(const std::string& key, const std::string& value) {
  lines_[key] = value;
  if (folder_.empty()) return;
  Read();  // merges entries that other processes have added
  if (const Status written = Write(); !written.ok()) {
    LogWarning("cuda", "the tuning cache of {}s is not saved: {}", kind_.name, ToString(written));
  }
}

Status TuningCacheFile::Write() {
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files_, folder_));
  return ReplaceFile(files_, JoinPath(folder_, TuningCacheFileName(kind_, owner_)),
                     FormatTuningEntries(kind_, owner_, lines_));
}

}  // namespace troupe::kernels::cuda
