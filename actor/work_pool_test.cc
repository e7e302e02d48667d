#include "actor/work_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace troupe {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

// The turns that work has got, in order; waits end after a time that no test takes.
class Turns {
 public:
  void Add(const Status& turn) {
    const std::lock_guard lock(mutex_);
    turns_.push_back(turn);
    changed_.notify_all();
  }
  std::vector<Status> WaitFor(size_t turns) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, seconds(30), [&] { return turns_.size() >= turns; });
    return turns_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Status> turns_;
};

class AdvancedClock final : public Clock {
 public:
  MonotonicTime Now() const override { return clock_.Now() + Duration(ahead_.load()); }
  int64_t WallNanoseconds() const override { return clock_.WallNanoseconds(); }
  void Advance(Duration by) { ahead_ += by.count(); }

 private:
  SystemClock clock_;
  std::atomic<int64_t> ahead_{0};
};

class WorkPoolTest : public testing::Test {
 protected:
  WorkPool Spawn(const WorkPoolOptions& options) {
    StatusOr<WorkPool> pool = WorkPool::Spawn(system_, options);
    EXPECT_TRUE(pool.ok()) << pool.status();
    return *std::move(pool);
  }

  // Occupies a worker until the gate opens.
  void Block(const WorkPool& pool, size_t workers_blocked) {
    pool.Run([this](const Status& turn) {
      blocked_.Add(turn);
      EXPECT_EQ(gate_.WaitFor(1).size(), 1u);
    });
    EXPECT_EQ(blocked_.WaitFor(workers_blocked).size(), workers_blocked);
  }
  void OpenGate() { gate_.Add(OkStatus()); }

  AdvancedClock clock_;
  Turns gate_, blocked_, first_, second_;
  // Destroyed first: running work uses the others.
  ActorSystem system_{clock_, {.threads = 4, .max_actors = 16}};
};

TEST_F(WorkPoolTest, RunsFewAtATimeAndRefusesWhatWouldWaitBehindTooMany) {
  const WorkPool pool = Spawn({.name = "plans", .workers = 2, .max_waiting = 1});
  Block(pool, 1);
  Block(pool, 2);
  pool.Run([this](const Status& turn) { first_.Add(turn); });
  pool.Run([this](const Status& turn) { second_.Add(turn); });
  // The refusal comes while both workers are busy.
  ASSERT_EQ(second_.WaitFor(1).size(), 1u);
  EXPECT_EQ(second_.WaitFor(1)[0].code(), StatusCode::kResourceExhausted);
  OpenGate();
  ASSERT_EQ(first_.WaitFor(1).size(), 1u);
  EXPECT_TRUE(first_.WaitFor(1)[0].ok());
}

TEST_F(WorkPoolTest, AnswersEveryPieceOfWorkOnceUnderOverload) {
  const WorkPool pool = Spawn({.name = "plans", .workers = 1, .max_waiting = 8});
  constexpr size_t kRequests = 2000;
  Block(pool, 1);
  for (size_t i = 0; i < kRequests; ++i) {
    pool.Run([this](const Status& turn) { first_.Add(turn); });
  }
  OpenGate();
  const std::vector<Status> turns = first_.WaitFor(kRequests);
  ASSERT_EQ(turns.size(), kRequests);
  size_t done = 0;
  for (const Status& turn : turns) {
    done += turn.ok();
    if (turn.ok()) continue;
    EXPECT_EQ(turn.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(Message(turn)), HasSubstr("plans wait, at most 8 may"));
  }
  EXPECT_GE(done, 8u);
  EXPECT_LE(done, 8u + 2 * 9u) << "8 wait, and 9 each in the mailbox and in its reader's batch";
}

TEST_F(WorkPoolTest, ATurnThatComesTooLateIsNotTaken) {
  const Duration limit = seconds(60);
  const WorkPool pool = Spawn({.name = "plans", .workers = 1, .max_waiting = 1, .limit = limit});
  Block(pool, 1);
  pool.Run([this](const Status& turn) { first_.Add(turn); });
  // This refusal shows that the former began to wait.
  pool.Run([this](const Status& turn) { second_.Add(turn); });
  ASSERT_EQ(second_.WaitFor(1).size(), 1u);
  clock_.Advance(2 * limit);
  OpenGate();
  ASSERT_EQ(first_.WaitFor(1).size(), 1u);
  EXPECT_EQ(first_.WaitFor(1)[0].code(), StatusCode::kDeadlineExceeded);
}

TEST_F(WorkPoolTest, WhatWaitsIsDroppedWhenItEndsAndWhatComesLaterIsRefused) {
  const WorkPool pool = Spawn({.name = "plans", .workers = 1, .max_waiting = 4});
  Block(pool, 1);
  auto waits = std::make_shared<int>();
  const std::weak_ptr<int> waiting = waits;
  pool.Run([this, waits = std::move(waits)](const Status& turn) { first_.Add(turn); });
  ASSERT_TRUE(system_.Stop(pool.address(), Cancelled("enough")).ok());
  const auto limit = std::chrono::steady_clock::now() + seconds(20);
  while (!waiting.expired() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  EXPECT_TRUE(waiting.expired()) << "it still waits";
  OpenGate();
  // The pool's end is complete once its worker is done.
  Status later;
  while (later.code() != StatusCode::kNotFound && std::chrono::steady_clock::now() < limit) {
    pool.Run([&](const Status& turn) {
      if (turn.code() == StatusCode::kNotFound) later = turn;
    });
  }
  EXPECT_EQ(later.code(), StatusCode::kNotFound);
  EXPECT_EQ(first_.WaitFor(0).size(), 0u);
}

}  // namespace
}  // namespace troupe
