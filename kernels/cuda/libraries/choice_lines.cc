#include "kernels/cuda/libraries/choice_lines.h"

#include <unistd.h>

#include <cctype>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{16} << 20;

std::string TitleOf(const ChoiceKind& kind) {
  return fmt::format("troupe {} choices 1", kind.name);
}

std::string HeaderOf(const ChoiceKind& kind, const ChoicesOwner& owner) {
  return fmt::format("{}\ndevice {}\nlibrary {}\n", TitleOf(kind), owner.device, owner.library);
}

}  // namespace

std::string FormatLines(const ChoiceKind& kind, const ChoicesOwner& owner,
                        const ChoiceLines& lines) {
  std::string text = HeaderOf(kind, owner);
  for (const auto& [key, choice] : lines) text += fmt::format("{}: {}\n", key, choice);
  return text;
}

StatusOr<ChoiceLines> ParseLines(const ChoiceKind& kind, const ChoicesOwner& owner,
                                 std::string_view text) {
  const std::string header = HeaderOf(kind, owner);
  if (!text.starts_with(header)) {
    if (!text.starts_with(TitleOf(kind)))
      return InvalidArgument("line 1 is not \"{}\"", TitleOf(kind));
    return FailedPrecondition("it was made for a device or library other than {} with {}",
                              owner.device, owner.library);
  }
  // Rejected because a truncated line could still be read as a choice.
  if (!text.ends_with('\n')) return InvalidArgument("the last line is incomplete");
  text.remove_prefix(header.size());
  ChoiceLines lines;
  for (int number = 4; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    const size_t colon = line.find(": ");
    if (colon == std::string_view::npos ||
        !kind.is_choice(line.substr(0, colon), line.substr(colon + 2))) {
      return InvalidArgument("line {} is not a choice", number);
    }
    if (!lines.emplace(line.substr(0, colon), line.substr(colon + 2)).second) {
      return InvalidArgument("line {} has a second choice for its shape", number);
    }
  }
  return lines;
}

std::string ChoicesFileName(const ChoiceKind& kind, const ChoicesOwner& owner) {
  std::string device;
  for (const char c : owner.device) {
    device += std::isalnum(static_cast<unsigned char>(c))
                  ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                  : '-';
  }
  return fmt::format("{}-choices-{}-{}.txt", kind.name, device, owner.library);
}

ChoiceLinesFile::ChoiceLinesFile(FileSystem& files, std::string folder, ChoiceKind kind,
                                 ChoicesOwner owner)
    : files_(files), folder_(std::move(folder)), kind_(std::move(kind)), owner_(std::move(owner)) {
  Read();
}

void ChoiceLinesFile::Read() {
  if (folder_.empty()) return;
  const std::string path = JoinPath(folder_, ChoicesFileName(kind_, owner_));
  const StatusOr<std::string> text = ReadFile(files_, path, kMaxFileBytes, SymbolicLinks::kFollow);
  if (text.status().code() == StatusCode::kNotFound) return;
  StatusOr<ChoiceLines> read =
      text.ok() ? ParseLines(kind_, owner_, *text) : StatusOr<ChoiceLines>(text.status());
  if (!read.ok()) {
    LogWarning("cuda", "{} is not used and will be rewritten: {}", path, ToString(read.status()));
    return;
  }
  // Choices found by this process take precedence within it.
  lines_.merge(*read);
}

std::optional<std::string> ChoiceLinesFile::Find(const std::string& key) const {
  const auto found = lines_.find(key);
  if (found == lines_.end()) return std::nullopt;
  return found->second;
}

void ChoiceLinesFile::Add(const std::string& key, const std::string& choice) {
  lines_[key] = choice;
  if (folder_.empty()) return;
  Read();  // merges choices that other processes have added
  if (const Status written = Write(); !written.ok()) {
    LogWarning("cuda", "a choice of {}s is not saved: {}", kind_.name, ToString(written));
  }
}

Status ChoiceLinesFile::Write() {
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files_, folder_));
  const std::string path = JoinPath(folder_, ChoicesFileName(kind_, owner_));
  // Another process, possibly on another host, may write the file at the same time.
  const std::string written = fmt::format(
      "{}.{}-{}", path, getpid(), std::chrono::steady_clock::now().time_since_epoch().count());
  TROUPE_ASSIGN_OR_RETURN(const auto file, files_.Create(written, CreateMode::kExclusive));
  Status status = file->Append(AsBytes(FormatLines(kind_, owner_, lines_)));
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = file->Close();
  if (status.ok()) status = files_.Rename(written, path);
  if (!status.ok()) files_.Remove(written).IgnoreError();
  return status;
}

}  // namespace troupe::kernels::cuda
