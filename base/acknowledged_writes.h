// What a database had when its last synced write was acknowledged, in a small file beside it. RocksDB
// takes a log or a list of tables that was cut short, or whose last record was changed, for one that
// a crash has torn, and drops what follows without a word. This file tells the two apart.
//
// It is written after the write was synced and is never synced itself: after a loss of power it may
// lag, and it is never ahead. Not thread-safe.
#ifndef TROUPE_BASE_ACKNOWLEDGED_WRITES_H_
#define TROUPE_BASE_ACKNOWLEDGED_WRITES_H_

#include <cstdint>
#include <string>

#include "base/status.h"

namespace troupe {

// The remedy to name where a database has lost something.
inline constexpr char kLostDatabaseRemedy[] =
    "`troupe checkpoints rebuild-catalog` makes a new catalog of the checkpoints";

class AcknowledgedWrites {
 public:
  // Opens or makes `directory`/ACKNOWLEDGED, and compares the database's list of tables (its newest
  // MANIFEST) with what it says of it. To be called before the database is opened. DATA_LOSS where
  // the list has lost something, or the file itself is damaged.
  static StatusOr<AcknowledgedWrites> Open(const std::string& directory);
  ~AcknowledgedWrites();
  AcknowledgedWrites(AcknowledgedWrites&& other) noexcept;
  AcknowledgedWrites& operator=(AcknowledgedWrites&&) = delete;

  // DATA_LOSS if the opened database ends before the last acknowledged write.
  Status CheckRecovered(uint64_t sequence) const;

  // Everything up to `sequence` is synced.
  Status Note(uint64_t sequence);

 private:
  // The list of tables: its number, so many bytes of it, and their hash.
  struct Tables {
    uint64_t number = 0;
    uint64_t bytes = 0;
    uint64_t hash = 0;
  };

  AcknowledgedWrites(std::string directory, int file);
  std::string PathOf(uint64_t number) const;
  // Of the newest list; 0 if there is no database yet.
  StatusOr<uint64_t> NewestNumber() const;
  // Takes in what the newest list has now.
  Status Look();

  std::string directory_;
  int file_ = -1;
  uint64_t sequence_ = 0;
  Tables tables_;
  bool looked_ = false;  // since the database was opened
};

}  // namespace troupe

#endif  // TROUPE_BASE_ACKNOWLEDGED_WRITES_H_
