// A Store in memory that models a disk: Crash loses the batches that were not synced.
#ifndef TROUPE_BASE_STORE_MEMORY_STORE_H_
#define TROUPE_BASE_STORE_MEMORY_STORE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "base/store/store.h"

namespace troupe {

class MemoryStore final : public Store {
 public:
  StatusOr<std::string> Get(std::string_view key) const override;
  Status Scan(std::string_view begin, std::string_view end,
              const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override;
  Status Write(const WriteBatch& batch, Durability durability) override;

  // Simulates a crash and restart of the machine. A prefix of the batches since the last synced one
  // survives, its length chosen by `seed`; the batch after it is torn in the log, so recovery drops
  // that batch and all later ones. Returns the number of lost batches.
  int Crash(uint64_t seed);

  // Makes the next `calls` writes fail with UNAVAILABLE and without effect.
  void FailWrites(int calls);

 private:
  using Data = std::map<std::string, std::string, std::less<>>;
  static void Apply(const WriteBatch& batch, Data& data);

  mutable std::mutex mutex_;
  Data visible_;
  Data durable_;
  std::deque<WriteBatch> unsynced_;  // batches in visible_ but not in durable_, oldest first
  int failing_writes_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_BASE_STORE_MEMORY_STORE_H_
