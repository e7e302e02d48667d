#include "base/store/rocksdb_store.h"

#include <fcntl.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/program/descriptor_limit.h"

namespace troupe {
namespace {

rocksdb::Slice ToSlice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view FromSlice(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

Status FromRocksDb(const rocksdb::Status& status, std::string_view what) {
  if (status.ok()) return OkStatus();
  StatusCode code = StatusCode::kUnavailable;
  if (status.IsNotFound()) code = StatusCode::kNotFound;
  if (status.IsCorruption()) code = StatusCode::kDataLoss;
  if (status.IsNoSpace()) code = StatusCode::kResourceExhausted;
  return MakeStatus(code, fmt::format("{}: {}", what, status.ToString()));
}

// RocksDB aborts where it cannot write what recovery writes: a table of what its logs hold, and
// little else.
Status CheckRoom(const std::string& directory) {
  constexpr off_t kElse = 1 << 20;
  off_t bytes = kElse;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() != ".log") continue;
    const auto size = entry.file_size(error);
    if (!error) bytes += static_cast<off_t>(size);
  }
  const std::string path = directory + "/ROOM";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file < 0) return ErrnoStatus(errno, "open " + path);
  const int failed = posix_fallocate(file, 0, bytes);
  close(file);
  unlink(path.c_str());
  if (failed == 0) return OkStatus();
  return ErrnoStatus(
      failed, fmt::format("the catalog in {} needs {} bytes to be opened", directory, bytes));
}

// Keeps the database until the process ends. The list is reachable, so it is no leak.
void LeaveOpen(std::unique_ptr<rocksdb::DB> db) {
  static std::vector<rocksdb::DB*>* const left_open = new std::vector<rocksdb::DB*>;
  left_open->push_back(db.release());
}

}  // namespace

RocksDbStore::RocksDbStore(std::unique_ptr<rocksdb::DB> db, AcknowledgedWrites acknowledged)
    : db_(std::move(db)), acknowledged_(std::move(acknowledged)) {}

// RocksDB aborts where a log that could not be written is written again or closed. The process ends
// after such an error: what is open is left open until then.
RocksDbStore::~RocksDbStore() {
  if (!failed_.ok()) LeaveOpen(std::move(db_));
}

StatusOr<std::unique_ptr<RocksDbStore>> RocksDbStore::Open(const std::string& directory) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.track_and_verify_wals_in_manifest = true;
  options.paranoid_checks = true;
  options.max_open_files = std::clamp(DescriptorLimit() / 8, 16, 256);
  options.keep_log_file_num = 4;
  options.write_buffer_size = 16 << 20;
  options.max_background_jobs = 2;

  std::error_code error;
  if (!std::filesystem::create_directory(directory, error) && error) {
    return ErrnoStatus(error.value(), directory);
  }
  TROUPE_RETURN_IF_ERROR(CheckRoom(directory));
  TROUPE_ASSIGN_OR_RETURN(AcknowledgedWrites acknowledged, AcknowledgedWrites::Open(directory));
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, directory, &opened);
  if (!status.ok()) {
    if (status.IsIOError() && status.ToString().find("lock") != std::string::npos) {
      return FailedPrecondition("the catalog in {} is locked: another coordinator has it open ({})",
                                directory, status.ToString());
    }
    const Status failed = FromRocksDb(status, fmt::format("open the catalog in {}", directory));
    if (failed.code() == StatusCode::kResourceExhausted) return failed;
    return DataLoss("{}; {}", Message(failed), kLostDatabaseRemedy);
  }
  std::unique_ptr<rocksdb::DB> db(opened);
  TROUPE_RETURN_IF_ERROR(acknowledged.CheckRecovered(db->GetLatestSequenceNumber()));
  TROUPE_RETURN_IF_ERROR(acknowledged.Note(db->GetLatestSequenceNumber()));
  return std::unique_ptr<RocksDbStore>(new RocksDbStore(std::move(db), std::move(acknowledged)));
}

StatusOr<std::string> RocksDbStore::Get(std::string_view key) const {
  std::string value;
  const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), ToSlice(key), &value);
  if (status.IsNotFound()) return NotFound("key {} is not in the store", key);
  TROUPE_RETURN_IF_ERROR(FromRocksDb(status, "read the catalog"));
  return value;
}

Status RocksDbStore::Scan(
    std::string_view begin, std::string_view end,
    const std::function<bool(std::string_view, std::string_view)>& visit) const {
  const rocksdb::Slice upper = ToSlice(end);
  rocksdb::ReadOptions options;
  if (!end.empty()) options.iterate_upper_bound = &upper;
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options));
  for (it->Seek(ToSlice(begin)); it->Valid(); it->Next()) {
    if (!visit(FromSlice(it->key()), FromSlice(it->value()))) break;
  }
  return FromRocksDb(it->status(), "scan the catalog");
}

Status RocksDbStore::Write(const WriteBatch& batch, Durability durability) {
  const std::lock_guard lock(write_mutex_);
  if (failed_.ok()) failed_ = WriteNow(batch, durability);
  return failed_;
}

std::optional<StoreFigures> RocksDbStore::Figures() const {
  using Properties = rocksdb::DB::Properties;
  StoreFigures figures;
  for (const auto& [property, value] :
       {std::pair(&Properties::kEstimateNumKeys, &figures.keys),
        std::pair(&Properties::kTotalSstFilesSize, &figures.files_bytes),
        std::pair(&Properties::kCurSizeAllMemTables, &figures.memory_bytes),
        std::pair(&Properties::kEstimatePendingCompactionBytes, &figures.pending_compaction_bytes),
        std::pair(&Properties::kBackgroundErrors, &figures.background_errors)}) {
    db_->GetIntProperty(*property, value);
  }
  return figures;
}

Status RocksDbStore::WriteNow(const WriteBatch& batch, Durability durability) {
  rocksdb::WriteBatch changes;
  for (const WriteBatch::Change& change : batch.changes()) {
    const rocksdb::Status added = change.value.has_value()
                                      ? changes.Put(ToSlice(change.key), ToSlice(*change.value))
                                      : changes.Delete(ToSlice(change.key));
    TROUPE_RETURN_IF_ERROR(FromRocksDb(added, "add to a batch"));
  }
  rocksdb::WriteOptions options;
  options.sync = durability == Durability::kSynced;
  TROUPE_RETURN_IF_ERROR(FromRocksDb(db_->Write(options, &changes), "write to the catalog"));
  if (durability != Durability::kSynced) return OkStatus();
  return acknowledged_.Note(db_->GetLatestSequenceNumber());
}

}  // namespace troupe
