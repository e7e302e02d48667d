#include "checkpoint/read/retention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

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
  record.set_verified(true);
  return record;
}

// Returns `count` verified commits of steps 50, 100 …
std::vector<v1::CheckpointRecord> Commits(int count) {
  std::vector<v1::CheckpointRecord> records;
  for (int i = 1; i <= count; ++i) records.push_back(Record(i, 50 * i));
  return records;
}

// Returns attempts 1, 2 … of steps 50, 100 …: "v" verified, "u" unverified, "p" pinned and
// unverified, "q" quarantined, "w" still being written.
std::vector<v1::CheckpointRecord> CommitsOf(std::string_view states) {
  std::vector<v1::CheckpointRecord> records = Commits(static_cast<int>(states.size()));
  for (size_t i = 0; i < states.size(); ++i) {
    records[i].set_verified(states[i] == 'v');
    records[i].set_pinned(states[i] == 'p');
    if (states[i] == 'q') records[i].set_state(v1::CHECKPOINT_STATE_QUARANTINED);
    if (states[i] == 'w') records[i].set_state(v1::CHECKPOINT_STATE_WRITING);
  }
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
  // Attempts 1 to 5 were due and numbered ahead; 6 and 7 were requested before the second of them.
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

TEST(AttemptsToDelete, OnlyVerifiedCommitsProtectAndOnlyUnverifiedOnesThatMustAreVerified) {
  struct Case {
    std::string_view states;  // oldest first
    int64_t keep;
    int64_t every;
    Attempts erase;
    Attempts verify;
  };
  const Case cases[] = {
      // Nothing could be deleted, so nothing is verified.
      {"", 2, 0, {}, {}},
      {"uu", 2, 0, {}, {}},
      {"uuu", 3, 0, {}, {}},
      {"uuuuuuuu", 0, 0, {}, {}},
      {"puu", 2, 0, {}, {}},
      {"uuuu", 2, 50, {}, {}},
      // The two newest protect older ones.
      {"uuu", 2, 0, {}, {3, 2}},
      {"uuv", 2, 0, {}, {2}},
      {"uvu", 2, 0, {}, {3}},
      {"uvv", 2, 0, {1}, {}},
      {"uuuuu", 2, 0, {}, {5, 4}},
      {"uuuuu", 3, 0, {}, {5, 4}},
      // With each new commit at most one attempt is verified.
      {"vvu", 2, 0, {}, {3}},
      {"uvvu", 3, 0, {1}, {}},
      {"vvuu", 3, 0, {}, {4}},
      {"vvvu", 1, 0, {1}, {4}},
      // Damaged commits protect nothing; the next newest replace them.
      {"uvqu", 2, 0, {}, {4}},
      {"uvqv", 2, 0, {1}, {}},
      {"uuqq", 2, 0, {}, {}},
      {"uuuq", 2, 0, {}, {3, 2}},
      {"uuuw", 2, 0, {}, {3, 2}},
      // Commits that are pinned or of an Nth step protect like any other.
      {"uupv", 2, 0, {}, {3}},
      {"uuvvp", 2, 100, {1}, {5}},
      {"uvpuv", 2, 100, {1}, {}},
  };
  for (const Case& one : cases) {
    const auto records = CommitsOf(one.states);
    const RetentionPolicy policy{one.keep, one.every};
    EXPECT_EQ(AttemptsToDelete(records, policy), one.erase) << one.states << one.keep << one.every;
    EXPECT_EQ(AttemptsToVerify(records, policy), one.verify) << one.states << one.keep << one.every;
  }
}

TEST(AttemptsToVerify, InSteadyStateReadsEachCommitOnceAtMostAndKeepsAsManyAsAsked) {
  for (int64_t keep = 1; keep <= 5; ++keep) {
    std::vector<v1::CheckpointRecord> records;
    const RetentionPolicy policy{keep, 0};
    std::vector<int> read(21);
    for (int attempt = 1; attempt <= 20; ++attempt) {
      records.push_back(Record(attempt, 50 * attempt));
      records.back().set_verified(false);
      for (const int64_t number : AttemptsToVerify(records, policy)) {
        EXPECT_EQ(++read[static_cast<size_t>(number)], 1) << keep;
        for (auto& record : records) {
          if (record.attempt() == number) record.set_verified(true);
        }
      }
      const Attempts gone = AttemptsToDelete(records, policy);
      std::erase_if(records, [&](const v1::CheckpointRecord& record) {
        return std::find(gone.begin(), gone.end(), record.attempt()) != gone.end();
      });
      EXPECT_EQ(records.size(), static_cast<size_t>(std::min<int64_t>(
                                    attempt, std::max<int64_t>(keep, kNewerVerifiedMin))));
    }
  }
}

}  // namespace
}  // namespace troupe
