#include "coordinator/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "base/store/memory_store.h"
#include "coordinator/unplaced_planner.h"

namespace troupe {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Collects values from other threads; waits end after a time that no test takes.
template <typename T>
class Collected {
 public:
  void Add(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  std::vector<T> WaitFor(size_t values) {
    return WaitUntil([&](const std::vector<T>& all) { return all.size() >= values; });
  }
  template <typename Condition>
  std::vector<T> WaitUntil(Condition condition) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, seconds(30), [&] { return condition(values_); });
    return values_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<T> values_;
};

// A gate that opens once; each visitor that waits at it is counted.
class Gate {
 public:
  void Visit() {
    visitors_.Add(true);
    EXPECT_EQ(opened_.WaitFor(1).size(), 1u);
  }
  void WaitForVisitors(size_t visitors) { EXPECT_EQ(visitors_.WaitFor(visitors).size(), visitors); }
  void Open() { opened_.Add(true); }

 private:
  Collected<bool> visitors_, opened_;
};

// A MemoryStore that counts the synced writes.
class CountingStore final : public Store {
 public:
  StatusOr<std::string> Get(std::string_view key) const override { return store.Get(key); }
  Status Scan(std::string_view begin, std::string_view end,
              const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override {
    return store.Scan(begin, end, visit);
  }
  Status Write(const WriteBatch& batch, Durability durability) override {
    writes += durability == Durability::kSynced;
    return store.Write(batch, durability);
  }

  MemoryStore store;
  std::atomic<int> writes{0};
};

class FakeSession final : public SessionSink {
 public:
  void Send(v1::CoordinatorMessage message, bool then_close) override {
    messages.Add(std::move(message));
  }
  Collected<v1::CoordinatorMessage> messages;
};

// Writes down its calls as text; blocks in Push if it has a gate.
class FakeWatcher final : public WatchSink {
 public:
  explicit FakeWatcher(Gate* gate = nullptr) : gate_(gate) {}
  void Begin(WatchStart start) override { calls.Add("begin " + ToString(start.status)); }
  bool Push(const v1::WatchJobResponse& update) override {
    calls.Add(update.has_event() ? update.event().event() : "end");
    if (gate_ != nullptr) gate_->Visit();
    return true;
  }
  void End(const Status& reason) override { calls.Add("ended " + ToString(reason)); }

  Collected<std::string> calls;

 private:
  Gate* const gate_;
};

// Passes on the messages that it gets; blocks at a gate before each if it has one.
class FakeMetrics final : public Actor {
 public:
  FakeMetrics(Collected<std::shared_ptr<Measured>>& measured, Gate* gate)
      : measured_(measured), gate_(gate) {}
  Status Handle(AnyMessage message, Context& context) override {
    if (gate_ != nullptr) gate_->Visit();
    measured_.Add(std::make_shared<Measured>(std::move(*message.As<Measured>())));
    return OkStatus();
  }

 private:
  Collected<std::shared_ptr<Measured>>& measured_;
  Gate* const gate_;
};

class EngineTest : public testing::Test {
 protected:
  void StartEngine(size_t most_waiting_events = kMostWaitingEvents,
                   size_t most_waiting_updates = kMostWaitingUpdates, Address metrics = {}) {
    EngineOptions options{.system = &system_,
                          .store = &store_,
                          .clock = &clock_,
                          .metrics = metrics,
                          .most_waiting_events = most_waiting_events,
                          .most_waiting_updates = most_waiting_updates};
    options.machine.planner = MakeUnplacedPlanner();
    auto engine = Engine::Start(std::move(options));
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  // The engine waits at the gate until it opens.
  void BlockEngine() {
    ASSERT_TRUE(engine_->Query([this](const CoordinatorState&) { gate_.Visit(); }).ok());
    gate_.WaitForVisitors(1);
  }

  CallId Create(const std::string& name) {
    return engine_->Call(
        [&](CallId call) {
          CreateJobCall create{call, {}, {}};
          create.request.mutable_job()->set_name(name);
          create.request.mutable_job()->mutable_checkpoint()->set_folder("");
          return decltype(Event::what)(std::move(create));
        },
        [this](const Reply& reply) {
          // The job must be durable before anybody learns of it.
          writes_at_reply_.Add(store_.writes);
          replies_.Add(reply.status);
        });
  }

  void Cancel(const std::string& name) {
    engine_->Call(
        [&](CallId call) {
          CancelJobCall cancel{call, {}};
          cancel.request.set_name(name);
          return decltype(Event::what)(std::move(cancel));
        },
        [](const Reply&) {});
  }

  SystemClock clock_;
  CountingStore store_;
  Gate gate_, slow_;
  Collected<Status> replies_;
  Collected<int> writes_at_reply_;
  Collected<std::string> ended_;
  Collected<std::shared_ptr<Measured>> measured_;
  std::unique_ptr<Engine> engine_;
  // Destroyed first: the actors use the others.
  ActorSystem system_{clock_,
                      {.threads = 4,
                       .max_actors = 16,
                       .on_root_end = [this](std::string_view name, const Status& cause) {
                         ended_.Add(fmt::format("{}: {}", name, ToString(cause)));
                       }}};
};

TEST_F(EngineTest, EventsThatWaitTogetherShareOneSyncedWriteBeforeTheirReplies) {
  StartEngine();
  BlockEngine();
  const int before = store_.writes;
  constexpr size_t kJobs = 20;
  for (size_t i = 0; i < kJobs; ++i) EXPECT_NE(Create(fmt::format("job-{}", i)), 0u);
  gate_.Open();
  const std::vector<Status> replies = replies_.WaitFor(kJobs);
  ASSERT_THAT(replies, SizeIs(kJobs));
  for (const Status& reply : replies) EXPECT_TRUE(reply.ok()) << reply;
  EXPECT_EQ(store_.writes, before + 1);
  EXPECT_EQ(writes_at_reply_.WaitFor(kJobs), std::vector<int>(kJobs, before + 1));
}

TEST_F(EngineTest, QueriesSeeTheDurableStateAfterEarlierEvents) {
  StartEngine();
  BlockEngine();
  const int before = store_.writes;
  Create("a");
  Collected<std::pair<size_t, int>> seen;
  ASSERT_TRUE(engine_
                  ->Query([&](const CoordinatorState& state) {
                    seen.Add({state.jobs.size(), store_.writes});
                  })
                  .ok());
  Create("b");
  gate_.Open();
  EXPECT_THAT(seen.WaitFor(1), ElementsAre(std::pair<size_t, int>(1, before + 1)));
  EXPECT_THAT(replies_.WaitFor(2), SizeIs(2));
}

TEST_F(EngineTest, RefusesWhatFindsNoRoomAndLosesNothingThatItTook) {
  StartEngine(/*most_waiting_events=*/4);
  const auto session = std::make_shared<FakeSession>();
  const StatusOr<SessionId> opened = engine_->OpenSession(session);
  ASSERT_TRUE(opened.ok());
  BlockEngine();
  Collected<bool> read;
  const CallId call = Create("a");
  EXPECT_NE(call, 0u);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(engine_->Query([&](const CoordinatorState&) { read.Add(true); }).ok());
  }
  // The mailbox is full: each kind of sender gets an error.
  const auto refused = StatusCode::kResourceExhausted;
  EXPECT_EQ(engine_->Query([&](const CoordinatorState&) { read.Add(true); }).code(), refused);
  EXPECT_EQ(engine_->Receive(*opened, {}).code(), refused);
  EXPECT_EQ(engine_->OpenSession(session).status().code(), refused);
  EXPECT_EQ(Create("b"), 0u);
  EXPECT_THAT(replies_.WaitFor(1)[0].code(), refused);
  Collected<Status> logs;
  EXPECT_EQ(engine_->ReadLogs({}, [&](const LogChunk& chunk) { logs.Add(chunk.status); }), 0u);
  EXPECT_THAT(logs.WaitFor(1)[0].code(), refused);
  FakeWatcher watcher;
  engine_->Watch("a", std::shared_ptr<WatchSink>(&watcher, [](WatchSink*) {}));
  EXPECT_THAT(watcher.calls.WaitFor(1)[0], HasSubstr("RESOURCE_EXHAUSTED"));
  // The ends of a session and of a call that the engine admitted fit.
  engine_->CloseSession(*opened);
  engine_->Abandon(call);
  gate_.Open();
  EXPECT_THAT(read.WaitFor(3), SizeIs(3));
  Collected<size_t> jobs;
  ASSERT_TRUE(
      engine_->Query([&](const CoordinatorState& state) { jobs.Add(state.jobs.size()); }).ok());
  EXPECT_THAT(jobs.WaitFor(1), ElementsAre(1u));
  EXPECT_THAT(ended_.WaitFor(0), SizeIs(0));
}

TEST_F(EngineTest, EndsWithTheCauseWhenTheCatalogCannotBeWrittenAndRepliesToNobody) {
  StartEngine();
  BlockEngine();
  store_.store.FailWrites(1);
  Create("a");
  gate_.Open();
  const std::vector<std::string> ended = ended_.WaitFor(1);
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_THAT(ended[0], HasSubstr("engine: UNAVAILABLE: the catalog cannot be written"));
  EXPECT_THAT(replies_.WaitFor(0), SizeIs(0));
  EXPECT_EQ(engine_->Query([](const CoordinatorState&) {}).code(), StatusCode::kUnavailable);
}

TEST_F(EngineTest, WatchersGetTheUpdatesAfterTheirSubscription) {
  StartEngine();
  Create("a");
  ASSERT_THAT(replies_.WaitFor(1), SizeIs(1));
  const auto watcher = std::make_shared<FakeWatcher>();
  const auto stranger = std::make_shared<FakeWatcher>();
  engine_->Watch("a", watcher);
  engine_->Watch("b", stranger);
  EXPECT_THAT(stranger->calls.WaitFor(1)[0], HasSubstr("begin NOT_FOUND"));
  Cancel("a");
  EXPECT_THAT(watcher->calls.WaitFor(3), ElementsAre("begin OK", "CANCELLED", "end"));
}

TEST_F(EngineTest, UpdatesThatFindNoRoomEndTheWatchersAndDoNotHoldUpTheEngine) {
  StartEngine(kMostWaitingEvents, /*most_waiting_updates=*/2);
  Create("a");
  ASSERT_THAT(replies_.WaitFor(1), SizeIs(1));
  const auto watcher = std::make_shared<FakeWatcher>(&slow_);
  engine_->Watch("a", watcher);
  ASSERT_THAT(watcher->calls.WaitFor(1), SizeIs(1));
  const auto other = std::make_shared<FakeWatcher>();
  Create("other");
  ASSERT_THAT(replies_.WaitFor(2), SizeIs(2));
  engine_->Watch("other", other);
  ASSERT_THAT(other->calls.WaitFor(1), ElementsAre("begin OK"));
  // The event of this job blocks the fan-out. The engine goes on, one group of updates at a time.
  Cancel("a");
  slow_.WaitForVisitors(1);
  for (size_t i = 0; i < 8; ++i) {
    Create(fmt::format("job-{}", i));
    ASSERT_THAT(replies_.WaitFor(3 + i), SizeIs(3 + i));
  }
  // A new watcher finds no room either and gets an error.
  const auto late = std::make_shared<FakeWatcher>();
  engine_->Watch("other", late);
  EXPECT_THAT(late->calls.WaitFor(1)[0], HasSubstr("ended RESOURCE_EXHAUSTED"));
  slow_.Open();
  // This watcher missed nothing, but the updates that were lost could have been its own.
  EXPECT_THAT(other->calls.WaitFor(2), ElementsAre("begin OK", HasSubstr("RESOURCE_EXHAUSTED")));
  const auto again = std::make_shared<FakeWatcher>();
  engine_->Watch("other", again);
  EXPECT_THAT(again->calls.WaitFor(1), ElementsAre("begin OK"));
  EXPECT_THAT(ended_.WaitFor(0), SizeIs(0));
}

TEST_F(EngineTest, MeasurementsThatFindNoRoomAreCountedAndTheFiguresOfJobsAreSentAgain) {
  const StatusOr<Address> metrics = system_.Spawn(
      "metrics", std::make_unique<FakeMetrics>(measured_, &slow_), {.mailbox_capacity = 1});
  ASSERT_TRUE(metrics.ok());
  StartEngine(kMostWaitingEvents, kMostWaitingUpdates, *metrics);
  slow_.WaitForVisitors(1);
  const auto stranger = std::make_shared<FakeSession>();
  const StatusOr<SessionId> session = engine_->OpenSession(stranger);
  ASSERT_TRUE(session.ok());
  v1::WorkerMessage hello;
  hello.mutable_hello()->set_protocol_version(2);
  hello.mutable_hello()->set_name("stranger");
  hello.mutable_hello()->set_incarnation(1);
  ASSERT_TRUE(engine_->Receive(*session, hello).ok());
  // Each of these groups is measured, and metrics has room for one.
  constexpr size_t kJobs = 5;
  for (size_t i = 0; i < kJobs; ++i) {
    v1::WorkerMessage unasked;
    unasked.mutable_log_lines()->set_request(7);
    ASSERT_TRUE(engine_->Receive(*session, unasked).ok());
    Create(fmt::format("job-{}", i));
    ASSERT_THAT(replies_.WaitFor(i + 1), SizeIs(i + 1));
  }
  slow_.Open();
  Create("last");
  uint64_t dropped = 0, received = 0;
  size_t most_jobs = 0;
  measured_.WaitUntil([&](const auto& messages) {
    dropped = received = 0;
    for (const auto& one : messages) {
      dropped += one->dropped;
      received += one->measurements.size();
      most_jobs = std::max(most_jobs, one->jobs.size());
    }
    return dropped + received == kJobs && most_jobs >= kJobs;
  });
  EXPECT_GE(most_jobs, kJobs) << "all jobs, not only the touched one";
  EXPECT_GT(dropped, 0u);
  EXPECT_EQ(dropped + received, kJobs);
}

TEST_F(EngineTest, DurationsThatFindNoRoomAreSentWithTheNextFigures) {
  const StatusOr<Address> metrics = system_.Spawn(
      "metrics", std::make_unique<FakeMetrics>(measured_, &slow_), {.mailbox_capacity = 1});
  ASSERT_TRUE(metrics.ok());
  StartEngine(kMostWaitingEvents, kMostWaitingUpdates, *metrics);
  slow_.WaitForVisitors(1);
  const int before = store_.writes;
  constexpr size_t kJobs = 3;
  for (size_t i = 0; i < kJobs; ++i) {
    Create(fmt::format("job-{}", i));
    ASSERT_THAT(replies_.WaitFor(i + 1), SizeIs(i + 1));
  }
  // The next figures are due by then, and dropped: metrics still waits at the gate.
  const MonotonicTime due = clock_.Now() + std::chrono::milliseconds(1100);
  size_t calls = kJobs;
  while (clock_.Now() < due) {
    Create("job-0");  // is refused: it exists
    ASSERT_EQ(replies_.WaitFor(++calls).size(), calls);
  }
  slow_.Open();
  const auto counted = [](const DurationCounts& durations) {
    return std::accumulate(durations.counts.begin(), durations.counts.end(), 0.0);
  };
  double writes = 0, turns = 0;
  measured_.WaitUntil([&](const auto& messages) {
    writes = turns = 0;
    for (const auto& one : messages) {
      if (!one->control) continue;
      writes += counted(one->control->catalog_writes);
      turns += counted(one->control->turns);
    }
    return writes >= store_.writes - before && turns >= kJobs;
  });
  EXPECT_GE(writes, store_.writes - before);
  EXPECT_GE(turns, kJobs);
}

}  // namespace
}  // namespace troupe
