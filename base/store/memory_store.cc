#include "base/store/memory_store.h"

#include "base/random.h"

namespace troupe {

void MemoryStore::Apply(const WriteBatch& batch, Data& data) {
  for (const WriteBatch::Change& change : batch.changes()) {
    if (change.value.has_value()) {
      data[change.key] = *change.value;
    } else {
      data.erase(change.key);
    }
  }
}

StatusOr<std::string> MemoryStore::Get(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  const auto found = visible_.find(key);
  if (found == visible_.end()) return NotFound("key {} is not in the store", key);
  return found->second;
}

Status MemoryStore::Scan(
    std::string_view begin, std::string_view end,
    const std::function<bool(std::string_view, std::string_view)>& visit) const {
  // The copy lets `visit` write to the store and still see one consistent view.
  std::vector<std::pair<std::string, std::string>> view;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = visible_.lower_bound(begin);
         it != visible_.end() && (end.empty() || it->first < end); ++it) {
      view.emplace_back(*it);
    }
  }
  for (const auto& [key, value] : view) {
    if (!visit(key, value)) break;
  }
  return OkStatus();
}

Status MemoryStore::Write(const WriteBatch& batch, Durability durability) {
  const std::lock_guard lock(mutex_);
  if (failing_writes_ > 0) {
    --failing_writes_;
    return Unavailable("injected write failure");
  }
  Apply(batch, visible_);
  unsynced_.push_back(batch);
  if (durability == Durability::kSynced) {
    for (const WriteBatch& pending : unsynced_) Apply(pending, durable_);
    unsynced_.clear();
  }
  return OkStatus();
}

int MemoryStore::Crash(uint64_t seed) {
  const std::lock_guard lock(mutex_);
  const uint64_t choices = unsynced_.size() + 1;
  const uint64_t kept = UniformBits(RandomKey(seed, "memory_store/crash"), 0) % choices;
  for (uint64_t i = 0; i < kept; ++i) Apply(unsynced_[i], durable_);
  const int lost = static_cast<int>(unsynced_.size() - kept);
  unsynced_.clear();
  visible_ = durable_;
  return lost;
}

void MemoryStore::FailWrites(int calls) {
  const std::lock_guard lock(mutex_);
  failing_writes_ = calls;
}

}  // namespace troupe
