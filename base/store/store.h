// The interface to a key-value store with ordered keys and atomic batches. The coordinator's
// catalog uses it on RocksDB; the simulator uses base/store/memory_store.h, which loses unsynced
// batches at a crash as a disk does.
//
// Keys compare as unsigned bytes. A batch takes effect completely or not at all, also across a
// crash; batches take effect in the order in which they were written, so a synced batch makes all
// earlier ones durable. Thread-safe.
#ifndef TROUPE_BASE_STORE_STORE_H_
#define TROUPE_BASE_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

class WriteBatch {
 public:
  struct Change {
    std::string key;
    std::optional<std::string> value;  // absent: deletes the key
  };

  // A later change of the same key overrides an earlier one.
  void Put(std::string key, std::string value) {
    changes_.push_back({std::move(key), std::move(value)});
  }
  void Delete(std::string key) { changes_.push_back({std::move(key), std::nullopt}); }
  void Append(const WriteBatch& other) {
    changes_.insert(changes_.end(), other.changes_.begin(), other.changes_.end());
  }
  bool empty() const { return changes_.empty(); }
  const std::vector<Change>& changes() const { return changes_; }

 private:
  std::vector<Change> changes_;
};

enum class Durability {
  kSynced,    // durable before Write returns OK
  kUnsynced,  // a machine crash may lose it; never reordered with other batches
};

// The state of a store on disk.
struct StoreFigures {
  uint64_t keys = 0;         // estimated
  uint64_t files_bytes = 0;  // size of the sorted tables
  uint64_t memory_bytes = 0;
  uint64_t pending_compaction_bytes = 0;  // estimated
  uint64_t background_errors = 0;         // failures of flushes and compactions
};

class Store {
 public:
  virtual ~Store() = default;

  // NOT_FOUND if the key is absent.
  virtual StatusOr<std::string> Get(std::string_view key) const = 0;

  // Calls `visit(key, value)` in order for the keys in [begin, end), on one consistent view, until
  // it returns false. An empty `end` means no upper bound. The arguments are valid only during the
  // call.
  virtual Status Scan(
      std::string_view begin, std::string_view end,
      const std::function<bool(std::string_view key, std::string_view value)>& visit) const = 0;

  // After an error, either all or none of the batch may have been written: the caller must not
  // acknowledge it.
  virtual Status Write(const WriteBatch& batch, Durability durability) = 0;

  // Takes little time. Absent if the store has no figures.
  virtual std::optional<StoreFigures> Figures() const { return std::nullopt; }
};

// Returns the smallest key above every key that begins with `prefix`, or "" if there is none.
std::string PrefixEnd(std::string_view prefix);

// Scans the keys that begin with `prefix`.
Status ScanPrefix(const Store& store, std::string_view prefix,
                  const std::function<bool(std::string_view key, std::string_view value)>& visit);

}  // namespace troupe

#endif  // TROUPE_BASE_STORE_STORE_H_
