// A Store in memory that models a disk: Crash loses what was not synced.
#ifndef TROUPE_BASE_MEMORY_STORE_H_
#define TROUPE_BASE_MEMORY_STORE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "base/store.h"

namespace troupe {

class MemoryStore final : public Store {
 public:
  StatusOr<std::string> Get(std::string_view key) const override;
  Status Scan(std::string_view begin, std::string_view end,
              const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override;
  Status Write(const WriteBatch& batch, Durability durability) override;

  // The machine dies and comes back: of the batches since the last synced one a prefix survives,
  // its length chosen by `seed`; the batch behind it was torn in the log, so recovery drops it and
  // all that follow. Returns how many batches were lost.
  int Crash(uint64_t seed);

  // The next `calls` writes fail with UNAVAILABLE and have no effect.
  void FailWrites(int calls);

 private:
  using Data = std::map<std::string, std::string, std::less<>>;
  static void Apply(const WriteBatch& batch, Data& data);

  mutable std::mutex mutex_;
  Data visible_;
  Data durable_;
  std::deque<WriteBatch> unsynced_;  // what visible_ has beyond durable_, oldest first
  int failing_writes_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_BASE_MEMORY_STORE_H_
