// The seam in front of RocksDB: ordered keys and atomic batches. The coordinator's catalog lies on
// it; the simulator runs on base/memory_store.h, which loses unsynced batches at a crash as a disk
// does.
//
// Keys compare as unsigned bytes. A batch takes effect whole or not at all, also across a crash;
// batches take effect in the order in which they were written, so a synced batch makes all earlier
// ones durable. Thread-safe.
#ifndef TROUPE_BASE_STORE_H_
#define TROUPE_BASE_STORE_H_

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
    std::optional<std::string> value;  // absent: the key is deleted
  };

  // Later changes of the same key win.
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
  kSynced,    // on the disk before Write returns OK
  kUnsynced,  // may be lost by a crash of the machine; never reordered with others
};

class Store {
 public:
  virtual ~Store() = default;

  // NOT_FOUND if the key is absent.
  virtual StatusOr<std::string> Get(std::string_view key) const = 0;

  // Calls `visit(key, value)` for the keys in [begin, end) in order, on one consistent view, until
  // it returns false. An empty `end` is above all keys. The arguments are valid during the call
  // only.
  virtual Status Scan(
      std::string_view begin, std::string_view end,
      const std::function<bool(std::string_view key, std::string_view value)>& visit) const = 0;

  // After an error nothing or all of the batch may be there: the caller must not acknowledge it.
  virtual Status Write(const WriteBatch& batch, Durability durability) = 0;
};

// The smallest key above every key that begins with `prefix`; empty if there is none.
std::string PrefixEnd(std::string_view prefix);

// Scan over the keys that begin with `prefix`.
Status ScanPrefix(const Store& store, std::string_view prefix,
                  const std::function<bool(std::string_view key, std::string_view value)>& visit);

}  // namespace troupe

#endif  // TROUPE_BASE_STORE_H_
