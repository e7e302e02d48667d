// A Store on RocksDB. It holds the coordinator's catalog.
#ifndef TROUPE_BASE_STORE_ROCKSDB_STORE_H_
#define TROUPE_BASE_STORE_ROCKSDB_STORE_H_

#include <memory>
#include <mutex>
#include <string>

#include "base/store/acknowledged_writes.h"
#include "base/store/store.h"

namespace rocksdb {
class DB;
}

namespace troupe {

class RocksDbStore final : public Store {
 public:
  // Opens or creates the database in `directory`; its parent must exist. A torn last record of
  // the log, which a crash leaves, is dropped. DATA_LOSS if an acknowledged write is missing
  // (base/store/acknowledged_writes.h) or on any other damage found. FAILED_PRECONDITION if another
  // process has the database open.
  static StatusOr<std::unique_ptr<RocksDbStore>> Open(const std::string& directory);

  ~RocksDbStore() override;
  RocksDbStore(const RocksDbStore&) = delete;
  RocksDbStore& operator=(const RocksDbStore&) = delete;

  StatusOr<std::string> Get(std::string_view key) const override;
  Status Scan(std::string_view begin, std::string_view end,
              const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override;
  // After an error every later call returns that error.
  Status Write(const WriteBatch& batch, Durability durability) override;
  std::optional<StoreFigures> Figures() const override;

 private:
  RocksDbStore(std::unique_ptr<rocksdb::DB> db, AcknowledgedWrites acknowledged);
  Status WriteNow(const WriteBatch& batch, Durability durability);

  std::unique_ptr<rocksdb::DB> db_;
  AcknowledgedWrites acknowledged_;
  std::mutex write_mutex_;
  Status failed_;  // the first failure of a write; guarded by write_mutex_
};

}  // namespace troupe

#endif  // TROUPE_BASE_STORE_ROCKSDB_STORE_H_
