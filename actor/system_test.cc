#include "actor/system.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Number {
  static constexpr std::string_view kMessageName = "number";
  int value = 0;
};
struct Go {
  static constexpr std::string_view kMessageName = "go";
};

// Collects lines of text from the actors; the test's thread waits for them with a time limit.
class Board {
 public:
  void Write(std::string line) {
    std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.notify_all();
  }
  std::vector<std::string> WaitFor(size_t lines) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, seconds(10), [&] { return lines_.size() >= lines; });
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

// The functions of an actor that a test defines in place.
struct Script {
  std::function<Status(Context&)> start;
  std::function<Status(AnyMessage, Context&)> handle;
  std::function<Status(Address, const Status&, Context&)> end;
  std::function<void()> destroyed;
  std::function<Status(Context&)> batch_end;
};

class ScriptActor final : public Actor {
 public:
  explicit ScriptActor(Script script) : script_(std::move(script)) {}
  ~ScriptActor() override {
    if (script_.destroyed) script_.destroyed();
  }
  Status Start(Context& context) override {
    return script_.start ? script_.start(context) : OkStatus();
  }
  Status Handle(AnyMessage message, Context& context) override {
    return script_.handle ? script_.handle(std::move(message), context) : OkStatus();
  }
  Status HandleEnd(Address child, const Status& cause, Context& context) override {
    return script_.end ? script_.end(child, cause, context)
                       : Actor::HandleEnd(child, cause, context);
  }
  Status HandleBatchEnd(Context& context) override {
    return script_.batch_end ? script_.batch_end(context) : OkStatus();
  }

 private:
  Script script_;
};

std::unique_ptr<Actor> Make(Script script) {
  return std::make_unique<ScriptActor>(std::move(script));
}

class ActorSystemTest : public testing::Test {
 protected:
  ActorSystemOptions Options(size_t max_actors = 64) {
    return {.threads = 2,
            .max_actors = max_actors,
            .seed = 1,
            .on_root_end = [this](std::string_view name, const Status& cause) {
              board_.Write(fmt::format("{} ended: {}", name, ToString(cause)));
            }};
  }

  SystemClock clock_;
  Board board_;
};

TEST_F(ActorSystemTest, HandlesMessagesOfOneSenderInTheOrderSent) {
  ActorSystem system(clock_, Options());
  constexpr int kMessages = 10000;
  int expected = 0;
  const auto receiver = system.Spawn(
      "receiver",
      Make({.handle =
                [&](AnyMessage message, Context&) {
                  if (message.As<Number>()->value != expected) {
                    return Internal("{} came as number {}", message.As<Number>()->value, expected);
                  }
                  if (++expected == kMessages) board_.Write("all in order");
                  return OkStatus();
                }}),
      {.mailbox_capacity = kMessages});
  ASSERT_TRUE(receiver.ok());
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(system.Send(*receiver, AnyMessage(Number{i})).ok());
  }
  EXPECT_EQ(board_.WaitFor(1), std::vector<std::string>{"all in order"});
}

TEST_F(ActorSystemTest, NotifiesTheSenderThatAMailboxIsFull) {
  ActorSystem system(clock_, Options());
  Board entered;
  std::mutex hold;
  hold.lock();
  const auto receiver = system.Spawn("receiver",
                                     Make({.handle =
                                               [&](AnyMessage, Context&) {
                                                 entered.Write("in");
                                                 std::lock_guard wait(hold);
                                                 return OkStatus();
                                               }}),
                                     {.mailbox_capacity = 2});
  ASSERT_TRUE(system.Send(*receiver, AnyMessage(Go{})).ok());
  ASSERT_EQ(entered.WaitFor(1).size(), 1u);
  EXPECT_TRUE(system.Send(*receiver, AnyMessage(Go{})).ok());
  EXPECT_TRUE(system.Send(*receiver, AnyMessage(Go{})).ok());
  EXPECT_EQ(system.Send(*receiver, AnyMessage(Go{})).code(), StatusCode::kResourceExhausted);
  hold.unlock();
  EXPECT_EQ(entered.WaitFor(3).size(), 3u);
}

TEST_F(ActorSystemTest, TakesAnAdmittedMessageEvenIfTheMailboxIsFull) {
  ActorSystem system(clock_, Options());
  Board entered;
  std::mutex hold;
  hold.lock();
  const auto receiver = system.Spawn("receiver",
                                     Make({.handle =
                                               [&](AnyMessage message, Context&) {
                                                 entered.Write(std::string(message.name()));
                                                 std::lock_guard wait(hold);
                                                 return OkStatus();
                                               }}),
                                     {.mailbox_capacity = 1});
  ASSERT_TRUE(system.Send(*receiver, AnyMessage(Go{})).ok());
  ASSERT_EQ(entered.WaitFor(1).size(), 1u);
  EXPECT_TRUE(system.Send(*receiver, AnyMessage(Go{})).ok());
  EXPECT_EQ(system.Send(*receiver, AnyMessage(Go{})).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(system.SendAdmitted(*receiver, AnyMessage(Number{1})).ok());
  hold.unlock();
  EXPECT_EQ(entered.WaitFor(3), (std::vector<std::string>{"go", "go", "number"}));
}

TEST_F(ActorSystemTest, NotifiesAnActorThatTheMessagesThatWaitedTogetherAreHandled) {
  ActorSystem system(clock_, Options());
  Board entered;
  std::mutex hold;
  hold.lock();
  const auto receiver = system.Spawn(
      "receiver", Make({.handle =
                            [&](AnyMessage message, Context& context) {
                              entered.Write(std::to_string(message.As<Number>()->value));
                              if (message.As<Number>()->value > 0) return OkStatus();
                              std::lock_guard wait(hold);
                              return OkStatus();
                            },
                        .batch_end =
                            [&](Context& context) {
                              entered.Write(fmt::format("end, {} wait", context.waiting()));
                              return OkStatus();
                            }}));
  // The batch of the start.
  ASSERT_EQ(entered.WaitFor(1), std::vector<std::string>{"end, 0 wait"});
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(system.Send(*receiver, AnyMessage(Number{i})).ok());
    if (i == 0) {
      ASSERT_EQ(entered.WaitFor(2).size(), 2u);
    }
  }
  hold.unlock();
  EXPECT_EQ(entered.WaitFor(7), (std::vector<std::string>{"end, 0 wait", "0", "end, 3 wait", "1",
                                                          "2", "3", "end, 0 wait"}));
}

TEST_F(ActorSystemTest, EndsAnActorThatFailsAtTheEndOfABatch) {
  ActorSystem system(clock_, Options());
  ASSERT_TRUE(
      system.Spawn("writer", Make({.batch_end = [](Context&) { return DataLoss("disk is full"); }}))
          .ok());
  EXPECT_EQ(board_.WaitFor(1), std::vector<std::string>{"writer ended: DATA_LOSS: disk is full"});
}

TEST_F(ActorSystemTest, RefusesMessagesToAnActorThatHasEndedEvenIfItsPlaceIsTakenAgain) {
  ActorSystem system(clock_, Options(1));
  const auto first = system.Spawn("first", Make({.handle = [](AnyMessage, Context& context) {
                                    context.Stop();
                                    return OkStatus();
                                  }}));
  ASSERT_TRUE(system.Send(*first, AnyMessage(Go{})).ok());
  EXPECT_EQ(board_.WaitFor(1), std::vector<std::string>{"first ended: OK"});
  EXPECT_EQ(system.Send(*first, AnyMessage(Go{})).code(), StatusCode::kNotFound);
  const auto second = system.Spawn("second", Make({}));
  ASSERT_TRUE(second.ok());
  EXPECT_NE(*first, *second);
  EXPECT_EQ(system.Send(*first, AnyMessage(Go{})).code(), StatusCode::kNotFound);
  EXPECT_TRUE(system.Send(*second, AnyMessage(Go{})).ok());
}

TEST_F(ActorSystemTest, RefusesMoreActorsThanItHasRoomFor) {
  ActorSystem system(clock_, Options(1));
  ASSERT_TRUE(system.Spawn("first", Make({})).ok());
  EXPECT_EQ(system.Spawn("second", Make({})).status().code(), StatusCode::kResourceExhausted);
}

TEST_F(ActorSystemTest, FiresTimersInOrderOfTheirDueTimesAndNoneThatWasCancelled) {
  ActorSystem system(clock_, Options());
  const MonotonicTime start = clock_.Now();
  ASSERT_TRUE(
      system
          .Spawn("timed", Make({.start =
                                    [](Context& context) {
                                      context.SetTimer(milliseconds(20), AnyMessage(Number{2}));
                                      const TimerId cancelled =
                                          context.SetTimer(milliseconds(10), AnyMessage(Number{9}));
                                      context.SetTimer(milliseconds(1), AnyMessage(Number{1}));
                                      context.CancelTimer(cancelled);
                                      return OkStatus();
                                    },
                                .handle =
                                    [&](AnyMessage message, Context&) {
                                      board_.Write(std::to_string(message.As<Number>()->value));
                                      return OkStatus();
                                    }}))
          .ok());
  EXPECT_EQ(board_.WaitFor(2), (std::vector<std::string>{"1", "2"}));
  EXPECT_GE(clock_.Now() - start, milliseconds(20));
}

TEST_F(ActorSystemTest, DoesNotHandleATimerCancelledAfterItFired) {
  ActorSystem system(clock_, Options());
  auto timer = std::make_shared<TimerId>();
  const auto actor = system.Spawn(
      "timed", Make({.start =
                         [timer](Context& context) {
                           *timer = context.SetTimer(Duration(0), AnyMessage(Number{9}));
                           // Waits until the timer's notice is in the mailbox. Only time decides:
                           // the due time has passed and the other pool thread has had time to run.
                           const MonotonicTime until = context.Now() + milliseconds(5);
                           while (context.Now() < until) {
                           }
                           context.CancelTimer(*timer);
                           return context.Send(context.self(), AnyMessage(Go{}));
                         },
                     .handle =
                         [&](AnyMessage message, Context&) {
                           board_.Write(std::string(message.name()));
                           return OkStatus();
                         }}));
  ASSERT_TRUE(actor.ok());
  EXPECT_EQ(board_.WaitFor(1), std::vector<std::string>{"go"});
}

TEST_F(ActorSystemTest, ReportsTheCauseOfAChildsEndToTheOwner) {
  ActorSystem system(clock_, Options());
  ASSERT_TRUE(system
                  .Spawn("owner", Make({.start =
                                            [](Context& context) {
                                              return context
                                                  .Spawn("child",
                                                         Make({.start =
                                                                   [](Context&) {
                                                                     return DataLoss(
                                                                         "shard 3 is torn");
                                                                   }}))
                                                  .status();
                                            },
                                        .end =
                                            [&](Address, const Status& cause, Context&) {
                                              board_.Write("handled " + ToString(cause));
                                              return OkStatus();
                                            }}))
                  .ok());
  EXPECT_EQ(board_.WaitFor(1), std::vector<std::string>{"handled DATA_LOSS: shard 3 is torn"});
}

TEST_F(ActorSystemTest, PassesAFailureThatNobodyHandlesUpToTheRoot) {
  ActorSystem system(clock_, Options());
  ASSERT_TRUE(
      system
          .Spawn("root", Make({.start =
                                   [](Context& context) {
                                     return context
                                         .Spawn("middle",
                                                Make({.start =
                                                          [](Context& inner) {
                                                            return inner
                                                                .Spawn("leaf",
                                                                       Make({.start =
                                                                                 [](Context&) {
                                                                                   return Aborted(
                                                                                       "peer gone");
                                                                                 }}))
                                                                .status();
                                                          }}))
                                         .status();
                                   }}))
          .ok());
  EXPECT_EQ(board_.WaitFor(1), std::vector<std::string>{"root ended: ABORTED: peer gone"});
}

TEST_F(ActorSystemTest, StopsChildrenBeforeItReportsTheOwnersEnd) {
  ActorSystem system(clock_, Options());
  const auto owner = system.Spawn(
      "owner", Make({.start = [&](Context& context) -> Status {
        for (int i = 0; i < 3; ++i) {
          TROUPE_RETURN_IF_ERROR(
              context.Spawn("child", Make({.destroyed = [&] { board_.Write("child gone"); }}))
                  .status());
        }
        return OkStatus();
      }}));
  ASSERT_TRUE(system.Stop(*owner, Cancelled("enough")).ok());
  EXPECT_EQ(board_.WaitFor(4), (std::vector<std::string>{"child gone", "child gone", "child gone",
                                                         "owner ended: CANCELLED: enough"}));
}

TEST_F(ActorSystemTest, StopsOneChildOnRequestAndNobodyElses) {
  ActorSystem system(clock_, Options());
  const auto stranger = system.Spawn("stranger", Make({}));
  ASSERT_TRUE(
      system
          .Spawn("owner", Make({.start = [&](Context& context) -> Status {
                                  board_.Write(ToString(MakeStatus(
                                      context.StopChild(*stranger, OkStatus()).code(), "")));
                                  TROUPE_ASSIGN_OR_RETURN(const Address child,
                                                          context.Spawn("child", Make({})));
                                  return context.StopChild(child, Unavailable("lease over"));
                                },
                                .end =
                                    [&](Address, const Status& cause, Context&) {
                                      board_.Write(ToString(cause));
                                      return OkStatus();
                                    }}))
          .ok());
  EXPECT_EQ(board_.WaitFor(2),
            (std::vector<std::string>{"NOT_FOUND: ", "UNAVAILABLE: lease over"}));
}

TEST_F(ActorSystemTest, DestroysWhatStillWaitsWhenItEnds) {
  int destroyed = 0;
  {
    ActorSystem system(clock_, Options());
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(system
                      .Spawn("timed", Make({.start =
                                                [](Context& context) {
                                                  context.SetTimer(std::chrono::hours(1),
                                                                   AnyMessage(Go{}));
                                                  return OkStatus();
                                                },
                                            .destroyed = [&] { ++destroyed; }}))
                      .ok());
    }
  }
  EXPECT_EQ(destroyed, 10);
}

TEST_F(ActorSystemTest, RunsAnActorOnOneThreadAtATimeUnderManySenders) {
  ActorSystem system(clock_, Options());
  constexpr int kSenders = 8;
  constexpr int kEach = 2000;
  // A plain int: a second thread inside the handler would cause a wrong sum and a race that the
  // thread sanitizer reports.
  int handled = 0;
  const auto counter = system.Spawn("counter",
                                    Make({.handle =
                                              [&](AnyMessage, Context&) {
                                                if (++handled == kSenders * kEach) {
                                                  board_.Write("all");
                                                }
                                                return OkStatus();
                                              }}),
                                    {.mailbox_capacity = size_t{kSenders} * kEach});
  for (int i = 0; i < kSenders; ++i) {
    ASSERT_TRUE(system
                    .Spawn("sender", Make({.start = [to = *counter](Context& context) -> Status {
                             for (int k = 0; k < kEach; ++k) {
                               TROUPE_RETURN_IF_ERROR(context.Send(to, AnyMessage(Go{})));
                             }
                             return OkStatus();
                           }}))
                    .ok());
  }
  EXPECT_EQ(board_.WaitFor(1), std::vector<std::string>{"all"});
}

}  // namespace
}  // namespace troupe
