#include "checkpoint/read/retention.h"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

using Commits = std::vector<const v1::CheckpointRecord*>;

// Returns the commits, newest first.
Commits CommitsOf(std::span<const v1::CheckpointRecord> records) {
  Commits commits;
  for (const v1::CheckpointRecord& record : records) {
    if (record.state() == v1::CHECKPOINT_STATE_COMMITTED) commits.push_back(&record);
  }
  std::sort(commits.begin(), commits.end(), [](const auto* a, const auto* b) {
    return std::pair(a->step(), a->attempt()) > std::pair(b->step(), b->attempt());
  });
  return commits;
}

// Returns whether the policy keeps a commit that has `newer` newer ones.
bool IsKept(const v1::CheckpointRecord& commit, int64_t newer, const RetentionPolicy& policy) {
  if (policy.keep_latest_k <= 0 || commit.pinned()) return true;
  if (newer < std::max<int64_t>(policy.keep_latest_k, kNewerVerifiedMin)) return true;
  return policy.keep_every_n_steps > 0 && commit.step() % policy.keep_every_n_steps == 0;
}

}  // namespace

std::vector<int64_t> AttemptsToDelete(std::span<const v1::CheckpointRecord> records,
                                      const RetentionPolicy& policy) {
  std::vector<int64_t> attempts;
  int64_t newer = 0;
  int newer_verified = 0;
  for (const v1::CheckpointRecord* const commit : CommitsOf(records)) {
    if (!IsKept(*commit, newer, policy) && newer_verified >= kNewerVerifiedMin) {
      attempts.push_back(commit->attempt());
    }
    ++newer;
    newer_verified += commit->verified();
  }
  std::reverse(attempts.begin(), attempts.end());
  return attempts;
}

std::vector<int64_t> AttemptsToVerify(std::span<const v1::CheckpointRecord> records,
                                      const RetentionPolicy& policy) {
  std::vector<int64_t> unverified;
  int64_t newer = 0;
  for (const v1::CheckpointRecord* const commit : CommitsOf(records)) {
    if (!IsKept(*commit, newer, policy)) {
      // Older commits need no more verified ones than this one.
      const int64_t verified = newer - static_cast<int64_t>(unverified.size());
      const int64_t lacking = std::max<int64_t>(kNewerVerifiedMin - verified, 0);
      unverified.resize(static_cast<size_t>(lacking));
      return unverified;
    }
    if (!commit->verified()) unverified.push_back(commit->attempt());
    ++newer;
  }
  return {};
}

}  // namespace troupe
