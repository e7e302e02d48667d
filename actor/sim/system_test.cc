#include "actor/sim/system.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Value {
  static constexpr std::string_view kMessageName = "go";
  int value = 0;
};

struct SimScript {
  std::function<Status(Context&)> start;
  std::function<Status(AnyMessage, Context&)> handle;
  std::function<Status(Address, const Status&, Context&)> end;
  std::function<Status(Context&)> batch_end;
};

class SimScriptActor final : public Actor {
 public:
  explicit SimScriptActor(SimScript script) : script_(std::move(script)) {}
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
  SimScript script_;
};

std::unique_ptr<Actor> MakeActor(SimScript script) {
  return std::make_unique<SimScriptActor>(std::move(script));
}

WriteBatch Put(std::string key, std::string value) {
  WriteBatch batch;
  batch.Put(std::move(key), std::move(value));
  return batch;
}

// The order in which ten actors ran that became ready at the same time.
std::vector<int> OrderOfTurns(uint64_t seed) {
  SimulatedSystem system({.seed = seed});
  std::vector<int> order;
  const NodeId node = system.AddNode("a", [&](NodeContext& context) {
    for (int i = 0; i < 10; ++i) {
      context.Spawn("turn", MakeActor({.start = [&order, i](Context&) {
                      order.push_back(i);
                      return OkStatus();
                    }}));
    }
  });
  system.Start(node);
  system.RunFor(seconds(1));
  return order;
}

TEST(SimulatedSystem, LetsTheSeedDecideWhichOfTheReadyActorsRunsFirst) {
  const std::vector<int> order = OrderOfTurns(1);
  EXPECT_EQ(order.size(), 10u);
  EXPECT_EQ(order, OrderOfTurns(1));
  EXPECT_NE(order, OrderOfTurns(2));
}

TEST(SimulatedSystem, NotifiesAnActorThatTheMessagesThatWaitedTogetherAreHandled) {
  SimulatedSystem system({.seed = 1});
  std::vector<std::string> seen;
  Address actor;
  const NodeId node = system.AddNode("a", [&](NodeContext& context) {
    actor = context.Spawn(
        "receiver", MakeActor({.handle =
                                   [&](AnyMessage message, Context&) {
                                     seen.push_back(std::to_string(message.As<Value>()->value));
                                     return OkStatus();
                                   },
                               .batch_end =
                                   [&](Context& context) {
                                     seen.push_back(fmt::format("end, {} wait", context.waiting()));
                                     return OkStatus();
                                   }}));
  });
  system.Start(node);
  system.RunFor(seconds(1));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(system.Send(actor, AnyMessage(Value{i})).ok());
  system.RunFor(seconds(1));
  EXPECT_EQ(seen, (std::vector<std::string>{"end, 0 wait", "0", "1", "2", "end, 0 wait"}));
}

TEST(SimulatedSystem, FiresTimersByTheNodesClockAndNotBeforeTheyAreDue) {
  SimulatedSystem system({.seed = 3});
  std::vector<Duration> waited;
  MonotonicTime start;
  const NodeId node = system.AddNode("a", [&](NodeContext& context) {
    context.Spawn("timed", MakeActor({.start =
                                          [&](Context& actor) {
                                            start = actor.Now();
                                            actor.SetTimer(seconds(20), AnyMessage(Value{}));
                                            const TimerId never =
                                                actor.SetTimer(seconds(15), AnyMessage(Value{}));
                                            actor.SetTimer(milliseconds(10), AnyMessage(Value{}));
                                            actor.CancelTimer(never);
                                            return OkStatus();
                                          },
                                      .handle =
                                          [&](AnyMessage, Context& actor) {
                                            waited.push_back(actor.Now() - start);
                                            return OkStatus();
                                          }}));
  });
  system.Start(node);
  system.RunFor(seconds(60));
  ASSERT_EQ(waited.size(), 2u);
  EXPECT_GE(waited[0], milliseconds(10));
  EXPECT_LT(waited[0], milliseconds(11));
  EXPECT_GE(waited[1], seconds(20));
  EXPECT_LT(waited[1], seconds(20) + milliseconds(1));
}

TEST(SimulatedSystem, EndsTheVolatileHalfOfACrashedNodeAndKeepsItsSyncedWrites) {
  SimulatedSystem system({.seed = 4});
  int handled = 0;
  const NodeId node = system.AddNode("a", [&](NodeContext& context) {
    Store* const store = &context.store();
    const uint64_t boots = context.boots();
    context.Spawn("writer", MakeActor({.start = [store, boots](Context& actor) -> Status {
                                         actor.SetTimer(seconds(10), AnyMessage(Value{}));
                                         return store->Write(Put("boots", std::to_string(boots)),
                                                             Durability::kSynced);
                                       },
                                       .handle =
                                           [&](AnyMessage, Context&) {
                                             ++handled;
                                             return OkStatus();
                                           }}));
  });
  system.Start(node);
  system.RunFor(seconds(1));
  system.Crash(node, CrashKind::kHost);
  EXPECT_FALSE(system.IsUp(node));
  system.RunFor(seconds(60));
  EXPECT_EQ(handled, 0);
  EXPECT_EQ(*system.Disk(node).Get("boots"), "1");
  system.Start(node);
  system.RunFor(seconds(60));
  EXPECT_EQ(handled, 1);
  EXPECT_EQ(*system.Disk(node).Get("boots"), "2");
}

TEST(SimulatedSystem, CrashesAtAWriteBeforeOrAfterItIsDurableAndNothingLaterTakesEffect) {
  for (const WriteCrash where : {WriteCrash::kBefore, WriteCrash::kDurable}) {
    SimulatedSystem system({.seed = 5});
    Status first, second, sent;
    const NodeId node = system.AddNode("a", [&](NodeContext& context) {
      Store* const store = &context.store();
      context.Spawn("writer",
                    MakeActor({
                        .handle =
                            [&, store](AnyMessage, Context& actor) {
                              first = store->Write(Put("first", "x"), Durability::kSynced);
                              second = store->Write(Put("second", "x"), Durability::kSynced);
                              sent = actor.Send(actor.self(), AnyMessage(Value{}));
                              return OkStatus();
                            },
                    }));
    });
    system.Start(node);
    system.RunFor(seconds(1));
    system.CrashAtNextWrite(node, where);
    ASSERT_TRUE(system.Send(Address{1}, AnyMessage(Value{})).ok());
    system.RunFor(seconds(1));
    EXPECT_FALSE(system.IsUp(node));
    EXPECT_EQ(first.code(), StatusCode::kUnavailable);
    EXPECT_EQ(second.code(), StatusCode::kUnavailable);
    EXPECT_FALSE(sent.ok());
    EXPECT_EQ(system.Disk(node).Get("first").ok(), where == WriteCrash::kDurable);
    EXPECT_FALSE(system.Disk(node).Get("second").ok());
  }
}

TEST(SimulatedSystem, SupervisesAsTheThreadedSystemDoes) {
  SimulatedSystem system({.seed = 6});
  std::vector<std::string> ended;
  system.OnRootEnd([&](NodeId, std::string_view name, const Status& cause) {
    ended.push_back(fmt::format("{}: {}", name, ToString(cause)));
  });
  const NodeId node = system.AddNode("a", [&](NodeContext& context) {
    context.Spawn("root", MakeActor({.start = [](Context& root) {
                    return root
                        .Spawn("child",
                               MakeActor({.start = [](Context&) { return Aborted("peer gone"); }}))
                        .status();
                  }}));
  });
  system.Start(node);
  system.RunFor(seconds(1));
  EXPECT_EQ(ended, std::vector<std::string>{"root: ABORTED: peer gone"});
}

TEST(SimulatedSystem, NotifiesTheSenderThatAMailboxIsFull) {
  SimulatedSystem system({.seed = 7});
  Address address;
  const NodeId node = system.AddNode("a", [&](NodeContext& context) {
    address = context.Spawn("slow", MakeActor({}), {.mailbox_capacity = 2});
  });
  system.Start(node);
  EXPECT_TRUE(system.Send(address, AnyMessage(Value{})).ok());
  EXPECT_TRUE(system.Send(address, AnyMessage(Value{})).ok());
  EXPECT_EQ(system.Send(address, AnyMessage(Value{})).code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace troupe
