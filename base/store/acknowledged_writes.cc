#include "base/store/acknowledged_writes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/text_file.h"

namespace troupe {
namespace {

constexpr char kName[] = "ACKNOWLEDGED";
constexpr size_t kFieldBytes = 17;  // 16 digits and a separator
constexpr size_t kFields = 4;
constexpr size_t kBytes = kFields * kFieldBytes;

// FNV-1a protects against damage, not against malice.
uint64_t Hash(std::string_view bytes) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

Status Lost(const std::string& what) { return DataLoss("{}; {}", what, kLostDatabaseRemedy); }

}  // namespace

AcknowledgedWrites::AcknowledgedWrites(std::string directory, int file)
    : directory_(std::move(directory)), file_(file) {}

AcknowledgedWrites::AcknowledgedWrites(AcknowledgedWrites&& other) noexcept
    : directory_(std::move(other.directory_)),
      file_(std::exchange(other.file_, -1)),
      sequence_(other.sequence_),
      tables_(other.tables_),
      looked_(other.looked_) {}

AcknowledgedWrites::~AcknowledgedWrites() {
  if (file_ >= 0) close(file_);
}

std::string AcknowledgedWrites::PathOf(uint64_t number) const {
  return fmt::format("{}/MANIFEST-{:06}", directory_, number);
}

StatusOr<uint64_t> AcknowledgedWrites::NewestNumber() const {
  const auto current = ReadTextFile(directory_ + "/CURRENT");
  if (!current.ok()) return uint64_t{0};
  constexpr std::string_view kPrefix = "MANIFEST-";
  uint64_t number = 0;
  if (current->starts_with(kPrefix)) {
    std::from_chars(current->data() + kPrefix.size(), current->data() + current->size(), number);
  }
  return number;
}

StatusOr<AcknowledgedWrites> AcknowledgedWrites::Open(const std::string& directory) {
  const std::string path = directory + "/" + kName;
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file < 0 && (errno == EISDIR || errno == ELOOP)) {
    return FailedPrecondition(
        "{}: is not a regular file; remove it to start with the catalog as it is", path);
  }
  if (file < 0) return ErrnoStatus(errno, "open " + path);
  AcknowledgedWrites writes(directory, file);
  char text[kBytes + 1];
  const ssize_t bytes = pread(file, text, sizeof(text), 0);
  if (bytes < 0) return ErrnoStatus(errno, "read " + path);
  if (bytes == 0) return writes;  // created just now
  uint64_t fields[kFields] = {};
  bool good = bytes == static_cast<ssize_t>(kBytes);
  for (size_t i = 0; good && i < kFields; ++i) {
    const char* const begin = text + i * kFieldBytes;
    const auto [end, error] = std::from_chars(begin, begin + kFieldBytes - 1, fields[i], 16);
    good = error == std::errc() && end == begin + kFieldBytes - 1;
  }
  if (!good) {
    return DataLoss(
        "{}: is damaged, so the catalog cannot be checked for lost writes; remove the file to "
        "start with the catalog as it is; {}",
        path, kLostDatabaseRemedy);
  }
  writes.sequence_ = fields[0];
  writes.tables_ = {fields[1], fields[2], fields[3]};
  if (writes.tables_.number == 0) return writes;
  TROUPE_ASSIGN_OR_RETURN(const uint64_t newest, writes.NewestNumber());
  // RocksDB has started a later table list, which it checks by itself.
  if (newest > writes.tables_.number) return writes;
  const auto list = ReadTextFile(writes.PathOf(writes.tables_.number));
  if (newest < writes.tables_.number || !list.ok() || list->size() < writes.tables_.bytes ||
      Hash(std::string_view(*list).substr(0, writes.tables_.bytes)) != writes.tables_.hash) {
    return Lost(fmt::format("{}: has changed since the last write was acknowledged",
                            writes.PathOf(writes.tables_.number)));
  }
  return writes;
}

Status AcknowledgedWrites::CheckRecovered(uint64_t sequence) const {
  if (sequence >= sequence_) return OkStatus();
  return Lost(
      fmt::format("{}: write {} was acknowledged, but the database ends at {}: its log was "
                  "truncated or changed",
                  directory_, sequence_, sequence));
}

Status AcknowledgedWrites::Look() {
  if (!looked_) {
    // RocksDB starts a new table list when it opens a database.
    TROUPE_ASSIGN_OR_RETURN(tables_.number, NewestNumber());
    tables_.bytes = 0;
    looked_ = true;
  }
  const std::string path = PathOf(tables_.number);
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, path);
  if (static_cast<uint64_t>(info.st_size) == tables_.bytes) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::string list, ReadTextFile(path));
  // The list has grown, which is rare: its recorded part must be on the disk before the record is.
  const int opened = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int synced = opened < 0 ? -1 : fsync(opened);
  const int error = errno;
  if (opened >= 0) close(opened);
  if (synced != 0) return ErrnoStatus(error, "fsync " + path);
  tables_.bytes = list.size();
  tables_.hash = Hash(list);
  return OkStatus();
}

Status AcknowledgedWrites::Note(uint64_t sequence) {
  sequence_ = sequence;
  TROUPE_RETURN_IF_ERROR(Look());
  const std::string text = fmt::format("{:016x} {:016x} {:016x} {:016x}\n", sequence_,
                                       tables_.number, tables_.bytes, tables_.hash);
  if (pwrite(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return ErrnoStatus(errno, directory_ + "/" + kName);
  }
  return OkStatus();
}

}  // namespace troupe
