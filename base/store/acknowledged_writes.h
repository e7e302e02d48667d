// A small file next to a RocksDB database that records the state of the database at its last
// acknowledged synced write. RocksDB cannot distinguish a log or a table list that was truncated
// or damaged from one that a crash has torn: it silently drops the records that follow. This file
// distinguishes the two cases.
//
// The file is written after the database write was synced and is never synced itself: after a power
// loss it may lag behind the database, but it is never ahead of it. Not thread-safe.
#ifndef TROUPE_BASE_STORE_ACKNOWLEDGED_WRITES_H_
#define TROUPE_BASE_STORE_ACKNOWLEDGED_WRITES_H_

#include <cstdint>
#include <string>

#include "base/status.h"

namespace troupe {

// Error messages about lost database contents name this remedy.
inline constexpr char kLostDatabaseRemedy[] =
    "`troupe checkpoints rebuild-catalog` makes a new catalog from the checkpoints";

class AcknowledgedWrites {
 public:
  // Opens or creates `directory`/ACKNOWLEDGED and compares its record with the database's table
  // list (the newest MANIFEST). REQUIRES: the database is not open yet. DATA_LOSS if the table list
  // has lost something or the file itself is damaged.
  static StatusOr<AcknowledgedWrites> Open(const std::string& directory);
  ~AcknowledgedWrites();
  AcknowledgedWrites(AcknowledgedWrites&& other) noexcept;
  AcknowledgedWrites& operator=(AcknowledgedWrites&&) = delete;

  // DATA_LOSS if the opened database ends before the last acknowledged write.
  Status CheckRecovered(uint64_t sequence) const;

  // Records that every write up to `sequence` is synced.
  Status Note(uint64_t sequence);

 private:
  // The state of the table list: its file number, its length in bytes, and the hash of those bytes.
  struct Tables {
    uint64_t number = 0;
    uint64_t bytes = 0;
    uint64_t hash = 0;
  };

  AcknowledgedWrites(std::string directory, int file);
  std::string PathOf(uint64_t number) const;
  // Returns the number of the newest table list, or 0 if there is no database yet.
  StatusOr<uint64_t> NewestNumber() const;
  // Reads the current state of the newest table list into tables_.
  Status Look();

  std::string directory_;
  int file_ = -1;
  uint64_t sequence_ = 0;
  Tables tables_;
  bool looked_ = false;  // true once Look ran on the opened database
};

}  // namespace troupe

#endif  // TROUPE_BASE_STORE_ACKNOWLEDGED_WRITES_H_
