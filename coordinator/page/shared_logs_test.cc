#include "coordinator/page/shared_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LogsClock final : public Clock {
 public:
  MonotonicTime Now() const override { return now; }
  int64_t WallNanoseconds() const override { return 0; }
  MonotonicTime now{std::chrono::hours(1)};
};

SharedLogs::Key KeyOf(const std::string& name, std::optional<int> rank = std::nullopt) {
  return {name, 1, rank};
}

class SharedLogsTest : public ::testing::Test {
 protected:
  LogSample Get(const SharedLogs::Key& key, const LogSample& read = {.lines = {"line"}}) {
    return logs_.Get(key, [&] {
      ++reads_;
      return read;
    });
  }

  LogsClock clock_;
  SharedLogs logs_{clock_};
  int reads_ = 0;
};

TEST_F(SharedLogsTest, ManyLooksWithinAShortTimeReadOnce) {
  for (int i = 0; i < 10; ++i) {
    const LogSample sample = Get(KeyOf("jobs/a"), {.lines = {std::to_string(i)}, .more_lines = 7});
    EXPECT_THAT(sample.lines, ElementsAre("0"));
    EXPECT_EQ(sample.more_lines, 7u);
  }
  EXPECT_EQ(reads_, 1);
  clock_.now += SharedLogs::kFresh;
  EXPECT_THAT(Get(KeyOf("jobs/a"), {.lines = {"new"}}).lines, ElementsAre("new"));
}

TEST_F(SharedLogsTest, OtherRanksAndJobsAreReadForThemselves) {
  Get(KeyOf("jobs/a"));
  Get(KeyOf("jobs/a", 0));
  Get(KeyOf("jobs/a", 1));
  Get(KeyOf("jobs/b"));
  Get({"jobs/a", 2, std::nullopt});
  EXPECT_EQ(reads_, 5);
}

TEST_F(SharedLogsTest, AnErrorOfOneViewerOrWithoutLinesIsNotShared) {
  for (const LogSample& failed :
       {LogSample{.error = NotFound("no such rank")}, LogSample{.error = DeadlineExceeded("late")},
        LogSample{.lines = {"line"}, .error = PermissionDenied("revoked")},
        LogSample{.lines = {"line"}, .error = Cancelled("ends")}}) {
    EXPECT_EQ(Get(KeyOf("jobs/a"), failed).error, failed.error);
  }
  EXPECT_EQ(reads_, 4);
  Get(KeyOf("jobs/a"), {.lines = {"line"}, .error = ResourceExhausted("long")});
  EXPECT_EQ(Get(KeyOf("jobs/a")).error.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(reads_, 5);
}

TEST_F(SharedLogsTest, OneThreadReadsAtATimeAndOthersShowWhatIsThere) {
  Get(KeyOf("jobs/old"));
  clock_.now += SharedLogs::kFresh;
  std::promise<void> begun, ends;
  auto reader = std::async(std::launch::async, [&] {
    return logs_.Get(KeyOf("jobs/a"), [&] {
      begun.set_value();
      ends.get_future().wait();
      return LogSample{.lines = {"late"}};
    });
  });
  begun.get_future().wait();
  EXPECT_THAT(Get(KeyOf("jobs/old")).lines, ElementsAre("line"));
  const LogSample refused = Get(KeyOf("jobs/b"));
  EXPECT_EQ(refused.error.code(), StatusCode::kUnavailable);
  EXPECT_THAT(refused.lines, IsEmpty());
  EXPECT_EQ(reads_, 1);
  ends.set_value();
  EXPECT_THAT(reader.get().lines, ElementsAre("late"));
  Get(KeyOf("jobs/b"));
  EXPECT_EQ(reads_, 2);
}

TEST_F(SharedLogsTest, TheOldestOfManySamplesIsForgotten) {
  for (size_t i = 0; i <= SharedLogs::kMost; ++i) {
    Get(KeyOf(std::to_string(i)));
    clock_.now += Duration(1);
  }
  const int reads = reads_;
  Get(KeyOf("1"));
  EXPECT_EQ(reads_, reads);
  Get(KeyOf("0"));
  EXPECT_EQ(reads_, reads + 1);
}

}  // namespace
}  // namespace troupe
