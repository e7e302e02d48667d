#include "coordinator/job/job_timers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/job/job_pace.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;

constexpr MonotonicTime kNow{std::chrono::hours(1)};
constexpr MonotonicTime kLater = kNow + std::chrono::seconds(7);

const TimeLimits& Limits() {
  static const TimeLimits limits = MakeTimeLimits(3);
  return limits;
}

// A job without a group in which nothing is due.
Job WaitingJob() {
  Job job;
  job.record.set_id("a");
  job.spec.mutable_training()->set_steps(100);
  job.plan.add_ranks()->set_worker("worker-0");
  return job;
}

// A job with a group; of its timers only the ticket and, later, the silence are due.
Job RunningJob() {
  Job job = WaitingJob();
  job.record.set_state(v1::JOB_STATE_RUNNING);
  Group& group = job.group.emplace();
  group.phase = GroupPhase::kRunning;
  group.ranks.resize(1);
  group.ticket_time = kNow;
  group.last_progress = kNow;
  return job;
}

const JobTimer& TimerNamed(std::string_view name) {
  for (const JobTimer& timer : JobTimers())
    if (timer.name == name) return timer;
  ADD_FAILURE() << "no timer is named " << name;
  return JobTimers().front();
}

// The order is a part of the behaviour: what is due together acts in it.
TEST(JobTimers, ActInThisOrder) {
  std::vector<std::string> names;
  for (const JobTimer& timer : JobTimers()) names.emplace_back(timer.name);
  EXPECT_THAT(names, ElementsAre("report flush", "doubt", "deletions", "restart backoff",
                                 "end of former ranks", "smaller layout", "image look", "phase",
                                 "repeated save", "images", "timed checkpoint", "silence", "ticket",
                                 "growth"));
}

TEST(JobTimers, OfAJobWithoutAnythingToDoAreNotDue) {
  const Job job = WaitingJob();
  for (const JobTimer& timer : JobTimers())
    EXPECT_EQ(timer.due(job, Limits()), std::nullopt) << timer.name;
  EXPECT_EQ(NextJobDeadline(job, Limits()), std::nullopt);
}

struct DueCase {
  std::string name;
  std::function<void(Job& job)> begin;  // then the timer is due at kLater
};

const std::vector<DueCase> kWaitingCases = {
    {"report flush",
     [](Job& job) {
       job.unflushed.emplace_back();
       job.flush_time = kLater;
     }},
    {"doubt", [](Job& job) { job.doubt_readings[1].look = kLater; }},
    {"deletions", [](Job& job) { job.delete_again_time = kLater; }},
    {"restart backoff", [](Job& job) { job.place_not_before = kLater; }},
    {"end of former ranks", [](Job& job) { job.choose_time = kLater; }},
    {"smaller layout", [](Job& job) { job.shrink_time = kLater; }},
    {"image look", [](Job& job) { job.image_look_time = kLater; }},
    {"phase",
     [](Job& job) {
       job.group.emplace().phase = GroupPhase::kDraining;
       job.group->deadline = kLater;
     }},
};

const std::vector<DueCase> kRunningCases = {
    {"repeated save", [](Job& job) { job.group->save_again_time = kLater; }},
    {"images", [](Job& job) { job.group->image_taking.emplace().deadline = kLater; }},
    {"timed checkpoint", [](Job& job) { job.checkpoint_due = kLater; }},
    {"silence", [](Job& job) { job.group->last_progress = kLater - HangLimitOf(job, Limits()); }},
    {"ticket", [](Job& job) { job.group->ticket_time = kLater - Limits().ticket_lifetime / 2; }},
    {"growth", [](Job& job) { job.grow_time = kLater; }},
};

TEST(JobTimers, AreDueByWhatTheJobWaitsFor) {
  for (const DueCase& one : kWaitingCases) {
    Job job = WaitingJob();
    one.begin(job);
    EXPECT_EQ(TimerNamed(one.name).due(job, Limits()), kLater) << one.name;
    EXPECT_EQ(NextJobDeadline(job, Limits()), kLater) << one.name << ": nothing else is due";
  }
  for (const DueCase& one : kRunningCases) {
    Job job = RunningJob();
    one.begin(job);
    EXPECT_EQ(TimerNamed(one.name).due(job, Limits()), kLater) << one.name;
    // Before it runs, and after, only the end of the group's phase is due.
    job.group->phase = GroupPhase::kStarting;
    job.group->deadline = kLater + std::chrono::hours(1);
    EXPECT_EQ(TimerNamed(one.name).due(job, Limits()), std::nullopt) << one.name;
    EXPECT_EQ(NextJobDeadline(job, Limits()), job.group->deadline) << one.name;
  }
  EXPECT_EQ(kWaitingCases.size() + kRunningCases.size(), JobTimers().size());
}

TEST(JobTimers, TheNextDeadlineIsTheEarliest) {
  Job job = WaitingJob();
  job.choose_time = kLater;
  job.shrink_time = kLater - std::chrono::seconds(2);
  job.delete_again_time = kLater - std::chrono::seconds(1);
  EXPECT_EQ(NextJobDeadline(job, Limits()), job.shrink_time);
}

TEST(JobTimers, ActOnceTheirTimeHasCome) {
  const CoordinatorOptions options;
  Fleet fleet;
  Effects effects;
  Turn turn{kLater - std::chrono::nanoseconds(1), 0, 1, options, fleet, effects};
  Job job = WaitingJob();
  job.choose_time = kLater;
  job.shrink_time = kLater;
  job.place_not_before = kLater + std::chrono::seconds(1);
  OnJobTime(job, turn);
  EXPECT_EQ(job.choose_time, kLater);
  EXPECT_FALSE(job.may_shrink);
  EXPECT_FALSE(turn.reschedule);
  turn.now = kLater;
  OnJobTime(job, turn);
  EXPECT_EQ(job.choose_time, std::nullopt);
  EXPECT_EQ(job.shrink_time, std::nullopt);
  EXPECT_TRUE(job.may_shrink);
  EXPECT_TRUE(turn.reschedule);
  EXPECT_EQ(NextJobDeadline(job, Limits()), job.place_not_before) << "it is not due yet";
}

}  // namespace
}  // namespace troupe
