#include "coordinator/state/stop.h"

#include <gtest/gtest.h>

#include <vector>

#include "coordinator/state/event_kind.h"

namespace troupe {
namespace {

// A stop, and the fields of the record that hold it, as catalogs have them.
struct StoredStop {
  std::optional<Stop> stop;
  int64_t stop_attempt = 0;
  bool grows = false;
  bool leaves_workers = false;
  bool cancels_anyway = false;
};

const std::vector<StoredStop> kStored = {
    {std::nullopt},
    {Stop{StopPurpose::kCancel, 4}, 4, false, false, false},
    {Stop{StopPurpose::kCancelAnyway, 4}, 4, false, false, true},
    {Stop{StopPurpose::kCancelAnyway, 0}, 0, false, false, true},
    {Stop{StopPurpose::kGrow, 4}, 4, true, false, false},
    {Stop{StopPurpose::kGrow, 0}, 0, true, false, false},
    {Stop{StopPurpose::kMove, 4}, 4, false, true, false},
    {Stop{StopPurpose::kMove, 0}, 0, false, true, false},
};

v1::JobRecord RecordOf(const StoredStop& stored) {
  v1::JobRecord record;
  record.set_stop_attempt(stored.stop_attempt);
  record.set_grows(stored.grows);
  record.set_leaves_workers(stored.leaves_workers);
  record.set_cancels_anyway(stored.cancels_anyway);
  return record;
}

TEST(StopTest, IsReadFromTheRecordThatItWasWrittenTo) {
  for (const StoredStop& stored : kStored) {
    const v1::JobRecord expected = RecordOf(stored);
    EXPECT_EQ(StopOf(expected), stored.stop) << expected.ShortDebugString();
    v1::JobRecord record;
    SetStop(stored.stop, &record);
    EXPECT_EQ(record.SerializeAsString(), expected.SerializeAsString())
        << expected.ShortDebugString();
  }
}

TEST(StopTest, ReplacesAnyOther) {
  for (const StoredStop& before : kStored) {
    for (const StoredStop& after : kStored) {
      v1::JobRecord record = RecordOf(before);
      SetStop(after.stop, &record);
      EXPECT_EQ(StopOf(record), after.stop) << record.ShortDebugString();
    }
  }
}

TEST(StopTest, IsAfterTheAttemptThatIsRecordedNext) {
  v1::JobRecord record;
  record.set_last_attempt(6);
  StopAfterNextAttempt(StopPurpose::kGrow, &record);
  EXPECT_EQ(StopOf(record), (Stop{StopPurpose::kGrow, 7}));
  EXPECT_EQ(StopAttempt(record), 7);
}

TEST(StopTest, OfAJobThatContinuesKeepsItsPurposeWhenTheRanksHaveStopped) {
  for (const StopPurpose purpose : {StopPurpose::kGrow, StopPurpose::kMove}) {
    v1::JobRecord record;
    SetStop(Stop{purpose, 3}, &record);
    SetStopped(&record);
    EXPECT_EQ(StopOf(record), (Stop{purpose, 0}));
    EXPECT_EQ(StopAttempt(record), 0);
  }
  v1::JobRecord record;
  SetStopped(&record);
  EXPECT_EQ(StopOf(record), std::nullopt);
}

TEST(StopTest, CancelsForAUserOnly) {
  for (const StoredStop& stored : kStored) {
    const bool cancels = stored.stop && (stored.stop->purpose == StopPurpose::kCancel ||
                                         stored.stop->purpose == StopPurpose::kCancelAnyway);
    EXPECT_EQ(IsBeingCancelled(RecordOf(stored)), cancels);
    EXPECT_EQ(stored.stop && CalledOffEvent(stored.stop->purpose) == event::kCancelCalledOff,
              cancels);
  }
}

}  // namespace
}  // namespace troupe
