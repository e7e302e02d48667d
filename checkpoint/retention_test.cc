#include "checkpoint/retention.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using Attempts = std::vector<int64_t>;

v1::CheckpointRecord Record(int64_t attempt, int64_t step,
                            v1::CheckpointState state = v1::CHECKPOINT_STATE_COMMITTED,
                            bool pinned = false) {
  v1::CheckpointRecord record;
  record.set_attempt(attempt);
  record.set_step(step);
  record.set_state(state);
  record.set_pinned(pinned);
  return record;
}

std::vector<v1::CheckpointRecord> Commits(int count) {
  std::vector<v1::CheckpointRecord> records;
  for (int i = 1; i <= count; ++i) records.push_back(Record(i, 50 * i));
  return records;
}

TEST(AttemptsToDelete, KeepsTheNewestK) {
  EXPECT_EQ(AttemptsToDelete(Commits(6), {.keep_latest_k = 3}), (Attempts{1, 2, 3}));
  EXPECT_EQ(AttemptsToDelete(Commits(3), {.keep_latest_k = 3}), Attempts{});
  EXPECT_EQ(AttemptsToDelete({}, {.keep_latest_k = 3}), Attempts{});
}

TEST(AttemptsToDelete, KeepsAllWithoutALimit) {
  EXPECT_EQ(AttemptsToDelete(Commits(9), {}), Attempts{});
}

TEST(AttemptsToDelete, NeverLeavesLessThanTwoNewerCommits) {
  EXPECT_EQ(AttemptsToDelete(Commits(2), {.keep_latest_k = 1}), Attempts{});
  EXPECT_EQ(AttemptsToDelete(Commits(4), {.keep_latest_k = 1}), (Attempts{1, 2}));
}

TEST(AttemptsToDelete, GoesByStepsNotByTheNumbersOfAttempts) {
  // Attempts 1 to 5 were due and numbered ahead; 6 and 7 were asked for before the second of them.
  const std::vector<v1::CheckpointRecord> records = {Record(1, 50), Record(6, 60), Record(7, 70),
                                                     Record(2, 100)};
  EXPECT_EQ(AttemptsToDelete(records, {.keep_latest_k = 2}), (Attempts{1, 6}));
}

TEST(AttemptsToDelete, KeepsPinnedOnesAndThoseOfEveryNthStep) {
  auto records = Commits(6);
  records[1].set_pinned(true);
  EXPECT_EQ(AttemptsToDelete(records, {.keep_latest_k = 2}), (Attempts{1, 3, 4}));
  EXPECT_EQ(AttemptsToDelete(records, {.keep_latest_k = 2, .keep_every_n_steps = 150}),
            (Attempts{1, 4}));
}

TEST(AttemptsToDelete, OtherStatesNeitherGoNorProtect) {
  const std::vector<v1::CheckpointRecord> records = {
      Record(1, 50),
      Record(2, 100),
      Record(3, 150),
      Record(4, 200, v1::CHECKPOINT_STATE_QUARANTINED),
      Record(5, 200, v1::CHECKPOINT_STATE_ABORTED),
      Record(6, 250, v1::CHECKPOINT_STATE_WRITING),
      Record(7, 20, v1::CHECKPOINT_STATE_DELETING)};
  EXPECT_EQ(AttemptsToDelete(records, {.keep_latest_k = 2}), (Attempts{1}));
  EXPECT_EQ(AttemptsToDelete(records, {.keep_latest_k = 3}), Attempts{});
}

TEST(AttemptsToDelete, OfOneStepTheLaterAttemptIsNewer) {
  // The order of the records does not matter.
  const std::vector<v1::CheckpointRecord> records = {Record(5, 100), Record(2, 50), Record(4, 100),
                                                     Record(3, 150)};
  EXPECT_EQ(AttemptsToDelete(records, {.keep_latest_k = 2}), (Attempts{2, 4}));
}

}  // namespace
}  // namespace troupe
