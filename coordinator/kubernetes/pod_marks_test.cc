#include "coordinator/kubernetes/pod_marks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr MonotonicTime kPodStart{std::chrono::hours(1)};
constexpr std::optional<bool> kUnknownMark;

PodMark MarkOf(std::optional<bool> is_busy, std::optional<Duration> idle_for) {
  PodMark mark{.incarnation = 1, .is_busy = is_busy};
  if (idle_for) mark.idle_since = kPodStart - *idle_for;
  return mark;
}

TEST(PodMarksTest, AMarkIsWrittenWhenItsWorkerIsUsedInAnotherWay) {
  struct Case {
    const char* name;
    std::optional<bool> marked;
    std::optional<Duration> idle_for;
    bool is_busy;
    bool is_due;
  };
  constexpr Duration kShort = kIdleDelay - std::chrono::milliseconds(1);
  const Case cases[] = {
      {"busy, not known", kUnknownMark, std::nullopt, true, true},
      {"busy, marked so", true, std::nullopt, true, false},
      {"busy after it was idle", false, kIdleDelay, true, true},
      {"idle, not known", kUnknownMark, kIdleDelay, false, true},
      {"idle for the first time, not known", kUnknownMark, std::nullopt, false, false},
      {"idle, marked so", false, kIdleDelay, false, false},
      {"idle for a short time after it was busy", true, kShort, false, false},
      {"idle for long enough after it was busy", true, kIdleDelay, false, true},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    PodMarks marks = {{"w", MarkOf(one.marked, one.idle_for)}};
    const auto due = DuePodWrites({{"w", 1, one.is_busy}}, kPodStart, &marks);
    const std::vector<PodWrite> written = {{"w", one.is_busy}};
    EXPECT_EQ(due, one.is_due ? written : std::vector<PodWrite>());
  }
}

TEST(PodMarksTest, AnAnswerDecidesWhenAPodIsMarkedAgain) {
  struct Case {
    const char* name;
    PodAnswer answer;
    Duration later;
    uint64_t incarnation;
    bool is_due;
  };
  const Case cases[] = {
      {"written", PodAnswer::kWritten, std::chrono::hours(1), 1, false},
      {"written, and a new life", PodAnswer::kWritten, Duration::zero(), 2, true},
      {"no pod", PodAnswer::kNoPod, std::chrono::hours(1), 1, false},
      {"no pod, and a new life", PodAnswer::kNoPod, Duration::zero(), 2, true},
      {"refused a moment ago", PodAnswer::kRefused, PodMark::kFirstWait / 2, 1, false},
      {"refused before", PodAnswer::kRefused, PodMark::kFirstWait, 1, true},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    PodMarks marks;
    const auto first = DuePodWrites({{"w", 1, true}}, kPodStart, &marks);
    ASSERT_THAT(first, ElementsAre(PodWrite{"w", true}));
    NotePodAnswer(first[0], one.answer, kPodStart, &marks);
    const auto due = DuePodWrites({{"w", one.incarnation, true}}, kPodStart + one.later, &marks);
    EXPECT_EQ(due.size(), one.is_due ? 1u : 0u);
  }
}

TEST(PodMarksTest, RefusedWritesWaitLongerEachTime) {
  PodMarks marks;
  MonotonicTime now = kPodStart;
  for (const int seconds : {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}) {
    const auto due = DuePodWrites({{"w", 1, true}}, now, &marks);
    ASSERT_THAT(due, ElementsAre(PodWrite{"w", true})) << seconds;
    NotePodAnswer(due[0], PodAnswer::kRefused, now, &marks);
    now += std::chrono::seconds(seconds);
    EXPECT_THAT(DuePodWrites({{"w", 1, true}}, now - std::chrono::milliseconds(1), &marks),
                IsEmpty())
        << seconds;
  }
}

TEST(PodMarksTest, BusyWorkersComeFirstAndForgottenOnesLeaveNothing) {
  PodMarks marks = {{"a", MarkOf(true, kIdleDelay)}, {"gone", MarkOf(true, std::nullopt)}};
  const std::vector<WorkerUse> uses = {{"a", 1, false}, {"b", 1, true}, {"c", 1, true}};
  EXPECT_THAT(DuePodWrites(uses, kPodStart, &marks),
              ElementsAre(PodWrite{"b", true}, PodWrite{"c", true}, PodWrite{"a", false}));
  EXPECT_FALSE(marks.contains("gone"));
}

TEST(PodMarksTest, OnlyNamesOfPodsAreAskedFor) {
  for (const char* const name : {"troupe-worker-0", "a", "0", "a.b-c.d", "troupe-elastic-7d9-x2"})
    EXPECT_TRUE(IsPodName(name)) << name;
  for (const char* const name :
       {"", ".", "..", "a..b", "-a", "a-", "a.-b", "a-.b", "Worker", "a_b", "a/b", "a?b", "a%2fb"})
    EXPECT_FALSE(IsPodName(name)) << name;
  EXPECT_TRUE(IsPodName(std::string(253, 'a')));
  EXPECT_FALSE(IsPodName(std::string(254, 'a')));
  PodMarks marks;
  EXPECT_THAT(DuePodWrites({{"../a", 1, true}}, kPodStart, &marks), IsEmpty());
}

TEST(PodMarksTest, AWorkerWithALeaseOrAnImageIsBusy) {
  CoordinatorState state;
  for (const char* const name : {"image", "lease", "none", "none-2"})
    state.fleet.workers[name].name = name;
  state.fleet.workers["lease"].incarnation = 7;
  state.fleet.leases[{"lease", 3}] = {};
  state.fleet.leases[{"none-1", 0}] = {};
  state.jobs["job"].images.add_images()->set_worker("image");
  const std::vector<WorkerUse> uses = WorkerUses(state);
  ASSERT_EQ(uses.size(), 4u);
  EXPECT_TRUE(uses[0].is_busy);
  EXPECT_TRUE(uses[1].is_busy);
  EXPECT_EQ(uses[1].incarnation, 7u);
  EXPECT_FALSE(uses[2].is_busy);
  EXPECT_FALSE(uses[3].is_busy);
}

}  // namespace
}  // namespace troupe
