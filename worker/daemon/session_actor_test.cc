// Tests the root actor with stubs in place of its parts.
#include "worker/daemon/session_actor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <vector>

#include "actor/system.h"
#include "worker/daemon/burn_in_actor.h"
#include "worker/daemon/coordinator_link.h"
#include "worker/daemon/event_sender.h"
#include "worker/daemon/file_tasks.h"
#include "worker/daemon/rank_actor.h"
#include "worker/daemon/worker_metrics.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr auto kLimit = std::chrono::seconds(60);

// The messages that a stub has received, and how it reacts.
class Part {
 public:
  // An actor that keeps its messages here, and fails once the test requests it.
  std::unique_ptr<Actor> MakeStub() { return std::make_unique<Stub>(*this); }

  // Waits for the next message of type `Body`, past those of other types.
  template <typename Body>
  Body Next() {
    std::unique_lock lock(mutex_);
    while (true) {
      if (!changed_.wait_for(lock, kLimit, [this] { return !messages_.empty(); })) {
        ADD_FAILURE() << "no " << Body::kMessageName;
        return {};
      }
      AnyMessage message = std::move(messages_.front());
      messages_.pop_front();
      if (auto* const body = message.As<Body>()) return std::move(*body);
    }
  }
  // The stub fails with `cause` at its next message.
  void Fail(Status cause) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(cause);
  }
  // The stub stays in its next handler until Release.
  void Hold() {
    const std::lock_guard lock(mutex_);
    is_held_ = true;
  }
  void AwaitHeld() {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, kLimit, [this] { return waits_; }));
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    is_held_ = false;
    changed_.notify_all();
  }

 private:
  class Stub final : public Actor {
   public:
    explicit Stub(Part& part) : part_(part) {}
    Status Handle(AnyMessage message, Context&) override {
      std::unique_lock lock(part_.mutex_);
      part_.messages_.push_back(std::move(message));
      part_.waits_ = part_.is_held_;
      part_.changed_.notify_all();
      part_.changed_.wait(lock, [this] { return !part_.is_held_; });
      part_.waits_ = false;
      return part_.failure_;
    }

   private:
    Part& part_;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<AnyMessage> messages_;
  Status failure_;
  bool is_held_ = false;
  bool waits_ = false;
};

class SessionActorTest : public ::testing::Test {
 protected:
  SessionActorTest() : metrics_({}) {}
  ~SessionActorTest() override {
    link_.Release();
    gate_->Close();
    system_.reset();
  }

  SessionActorOptions Options() {
    SessionActorOptions options{
        .memory_bytes = ProcessMemoryBytes, .totals = &metrics_, .works = &works_};
    options.send = [gate = gate_](Address to, AnyMessage message) {
      return gate->Send(to, std::move(message));
    };
    options.open_files = [gate = gate_, config = options.config](Address self) {
      return std::make_unique<FileTasks>(FileTasksOptions{
          .config = config,
          .send = [gate, self](AnyMessage message) { return gate->Send(self, std::move(message)); },
      });
    };
    options.config.identity.set_name("worker-0");
    options.config.identity.add_devices();
    options.link = link_.MakeStub();
    options.burn_in = burn_in_.MakeStub();
    options.start_rank = [this](int) -> StatusOr<StartedRank> {
      return StartedRank{rank_.MakeStub(), 0};
    };
    options.exit = [this](int code) { exit_code_.set_value(code); };
    return options;
  }
  void Run(SessionActorOptions options) {
    const auto address = system_->Spawn("session", MakeSessionActor(std::move(options)));
    ASSERT_TRUE(address.ok());
    session_ = *address;
  }

  // Sends the events in one message, and waits until the session has handled it.
  template <typename... What>
  void Send(What... what) {
    auto handled = std::make_shared<std::promise<void>>();
    std::future<void> is_handled = handled->get_future();
    std::shared_ptr<std::vector<SessionEvent>> events(new std::vector<SessionEvent>,
                                                      [handled](std::vector<SessionEvent>* ended) {
                                                        delete ended;
                                                        handled->set_value();
                                                      });
    (events->push_back({std::move(what), nullptr}), ...);
    ASSERT_TRUE(gate_->Send(session_, AnyMessage(SessionEvents{std::move(events)})).ok());
    ASSERT_EQ(is_handled.wait_for(kLimit), std::future_status::ready);
  }

  static session::StreamMessage FromStream(uint64_t stream, v1::CoordinatorMessage message) {
    message.set_leader_epoch(1);
    return {stream, std::move(message)};
  }
  static session::StreamMessage Welcome(uint64_t stream) {
    v1::CoordinatorMessage message;
    message.mutable_welcome()->set_leader_epoch(1);
    message.mutable_welcome()->set_lease_seconds(3600);
    return FromStream(stream, message);
  }
  static session::StreamMessage StartRank() {
    v1::CoordinatorMessage message;
    message.mutable_start_ranks()->set_job("a");
    message.mutable_start_ranks()->set_group_epoch(1);
    message.mutable_start_ranks()->mutable_plan()->add_ranks();
    message.mutable_start_ranks()->add_ranks(0);
    return FromStream(1, message);
  }
  static session::StreamMessage Ticket() {
    v1::CoordinatorMessage message;
    message.mutable_ticket()->set_job("a");
    message.mutable_ticket()->set_group_epoch(1);
    return FromStream(1, message);
  }
  static session::StreamMessage BurnIn(uint64_t request) {
    v1::CoordinatorMessage message;
    message.mutable_burn_in()->set_request(request);
    return FromStream(1, message);
  }
  static session::BurnInEnded BurnInDone(uint64_t request) {
    session::BurnInEnded ended;
    ended.done.set_request(request);
    return ended;
  }
  static session::RankReported Idle() {
    session::RankReported idle;
    idle.report.mutable_idle();
    return idle;
  }
  // Returns the end of a rank that is reported to the coordinator next.
  v1::RankStopped NextStopped() {
    while (!HasFailure()) {
      for (const v1::WorkerMessage& message : link_.Next<SendOnStream>().messages) {
        if (message.has_rank_stopped()) return message.rank_stopped();
      }
    }
    return {};
  }

  SystemClock clock_;
  WorkerMetrics metrics_;
  LastSign works_;
  Part link_, burn_in_, rank_;
  std::atomic<bool> is_ready_ = false;
  std::promise<int> exit_code_;
  std::promise<Status> root_end_;
  std::unique_ptr<ActorSystem> system_ = std::make_unique<ActorSystem>(
      clock_, ActorSystemOptions{.on_root_end = [this](std::string_view, const Status& cause) {
        root_end_.set_value(cause);
      }});
  std::shared_ptr<ActorGate> gate_ = std::make_shared<ActorGate>(system_.get());
  Address session_;
};

TEST_F(SessionActorTest, IsReadyFromTheWelcomeUntilItIsAskedToLeave) {
  SessionActorOptions options = Options();
  options.has_session = &is_ready_;
  Run(std::move(options));
  link_.Next<DialCoordinator>();
  EXPECT_FALSE(is_ready_);
  Send(Welcome(1));
  EXPECT_TRUE(is_ready_);
  Send(session::Leave{});
  EXPECT_FALSE(is_ready_) << "it waits for the coordinator to close its stream";
}

TEST_F(SessionActorTest, IsNotReadyWhileItDrains) {
  SessionActorOptions options = Options();
  options.has_session = &is_ready_;
  Run(std::move(options));
  link_.Next<DialCoordinator>();
  Send(Welcome(1), Idle(), StartRank());
  EXPECT_TRUE(is_ready_);
  Send(session::Drain{"SIGTERM", std::chrono::seconds(110)});
  EXPECT_FALSE(is_ready_) << "nothing more is placed here";
}

TEST_F(SessionActorTest, PassesCommandsToRanksAndMessagesToTheCoordinator) {
  Run(Options());
  EXPECT_EQ(link_.Next<DialCoordinator>().stream, 1u);
  Send(Welcome(1), Idle(), StartRank(), Ticket(), BurnInDone(7));
  EXPECT_TRUE(rank_.Next<CommandRank>().command.has_begin());
  EXPECT_TRUE(rank_.Next<CommandRank>().command.coordinator().has_ticket());
  const SendOnStream sent = link_.Next<SendOnStream>();
  EXPECT_EQ(sent.stream, 1u);
  ASSERT_EQ(sent.messages.size(), 1u);
  EXPECT_EQ(sent.messages[0].burn_in_done().request(), 7u);
}

TEST_F(SessionActorTest, AMessageThatIsHandledIsASignOfLife) {
  Run(Options());
  EXPECT_EQ(link_.Next<DialCoordinator>().stream, 1u);
  const auto begin = LastSign::Clock::now();
  Send(Welcome(1));
  const auto age = works_.Age();
  EXPECT_LE(age, LastSign::Clock::now() - begin) << "the sign is younger than `begin`";
}

TEST_F(SessionActorTest, ARankWithoutRoomForACommandEndsWithTheReason) {
  SessionActorOptions options = Options();
  options.rank_capacity = 1;
  Run(std::move(options));
  link_.Next<DialCoordinator>();
  // The rank does not run before the session has sent both commands of this message.
  rank_.Hold();
  Send(Welcome(1), Idle(), StartRank());
  rank_.AwaitHeld();
  Send(Ticket(), Ticket());
  rank_.Release();
  const v1::RankStopped stopped = NextStopped();
  EXPECT_EQ(stopped.job(), "a");
  EXPECT_TRUE(stopped.crashed());
  EXPECT_THAT(stopped.message(), HasSubstr("commands for the rank's process"));
}

TEST_F(SessionActorTest, AStreamWhoseLinkHasNoRoomIsDialledAgain) {
  SessionActorOptions options = Options();
  options.link_capacity = 1;
  Run(std::move(options));
  link_.Next<DialCoordinator>();
  link_.Hold();
  Send(Welcome(1), BurnInDone(1));
  link_.AwaitHeld();
  Send(BurnInDone(2));  // takes the only place
  Send(BurnInDone(3));  // the stream is given up
  Send(BurnInDone(4));  // kept for the next stream
  link_.Release();
  EXPECT_EQ(link_.Next<SendOnStream>().messages[0].burn_in_done().request(), 1u);
  EXPECT_EQ(link_.Next<SendOnStream>().messages[0].burn_in_done().request(), 2u);
  const uint64_t stream = link_.Next<DialCoordinator>().stream;
  EXPECT_GT(stream, 1u);
  Send(Welcome(stream));
  const SendOnStream sent = link_.Next<SendOnStream>();
  EXPECT_EQ(sent.stream, stream);
  EXPECT_EQ(sent.messages.back().burn_in_done().request(), 4u);
}

TEST_F(SessionActorTest, TheNewestBurnInIsKeptUntilThereIsRoom) {
  SessionActorOptions options = Options();
  options.burn_in_capacity = 1;
  Run(std::move(options));
  link_.Next<DialCoordinator>();
  burn_in_.Hold();
  Send(Welcome(1), BurnIn(1));
  burn_in_.AwaitHeld();
  Send(BurnIn(2), BurnIn(3), BurnIn(4));
  burn_in_.Release();
  for (const uint64_t request : {1, 2, 4})
    EXPECT_EQ(burn_in_.Next<WantBurnIn>().request->request(), request);
}

TEST_F(SessionActorTest, ARanksActorThatFailsEndsTheRankWithTheCause) {
  Run(Options());
  link_.Next<DialCoordinator>();
  rank_.Fail(Internal("a bug"));
  Send(Welcome(1), Idle(), StartRank());
  const v1::RankStopped stopped = NextStopped();
  EXPECT_TRUE(stopped.crashed());
  EXPECT_THAT(stopped.message(), HasSubstr("a bug"));
}

TEST_F(SessionActorTest, AnotherPartThatFailsEndsTheDaemonWithTheCause) {
  Run(Options());
  link_.Next<DialCoordinator>();
  burn_in_.Fail(Internal("a bug"));
  Send(Welcome(1), BurnIn(1));
  const Status cause = root_end_.get_future().get();
  EXPECT_THAT(ToString(cause), HasSubstr("burn-in"));
  EXPECT_THAT(ToString(cause), HasSubstr("a bug"));
}

TEST_F(SessionActorTest, ARefusalForGoodEndsTheDaemonWithItsCode) {
  Run(Options());
  link_.Next<DialCoordinator>();
  v1::CoordinatorMessage refused;
  refused.mutable_refused()->set_message("wrong version");
  Send(FromStream(1, refused));
  EXPECT_EQ(exit_code_.get_future().get(), 1);
  EXPECT_THAT(ToString(root_end_.get_future().get()), HasSubstr("wrong version"));
}

}  // namespace
}  // namespace troupe
