#include "actor/sim/network.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actor/sim/faults.h"
#include "actor/sim/system.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Redial {
  static constexpr std::string_view kMessageName = "redial";
};
struct Beat {
  static constexpr std::string_view kMessageName = "beat";
};

// Listens and records what it receives.
class Hub final : public Actor {
 public:
  Hub(SimulatedNetwork& network, NodeId node, std::vector<std::string>& got)
      : network_(network), node_(node), got_(got) {}
  Status Start(Context& context) override {
    network_.Listen(node_, context.self());
    return OkStatus();
  }
  Status Handle(AnyMessage message, Context& context) override {
    if (StreamData* data = message.As<StreamData>()) got_.push_back(data->bytes);
    if (message.As<StreamClosed>()) got_.push_back("closed");
    return OkStatus();
  }

 private:
  SimulatedNetwork& network_;
  const NodeId node_;
  std::vector<std::string>& got_;
};

// Dials, sends a number each 10 ms, and dials again one second after a close.
class Leaf final : public Actor {
 public:
  Leaf(SimulatedNetwork& network, NodeId node, NodeId hub, std::vector<std::string>& closes)
      : network_(network), node_(node), hub_(hub), closes_(closes) {}
  Status Start(Context& context) override {
    stream_ = network_.Dial(node_, context.self(), hub_);
    return OkStatus();
  }
  Status Handle(AnyMessage message, Context& context) override {
    if (message.As<StreamOpened>()) {
      open_ = true;
      context.SetTimer(milliseconds(10), AnyMessage(Beat{}));
    } else if (StreamClosed* closed = message.As<StreamClosed>()) {
      open_ = false;
      closes_.push_back(ToString(closed->cause));
      context.SetTimer(seconds(1), AnyMessage(Redial{}));
    } else if (message.As<Redial>()) {
      stream_ = network_.Dial(node_, context.self(), hub_);
    } else if (message.As<Beat>() && open_) {
      TROUPE_RETURN_IF_ERROR(network_.Write(stream_, context.self(), std::to_string(next_++)));
      context.SetTimer(milliseconds(10), AnyMessage(Beat{}));
    }
    return OkStatus();
  }

 private:
  SimulatedNetwork& network_;
  const NodeId node_;
  const NodeId hub_;
  std::vector<std::string>& closes_;
  StreamId stream_;
  bool open_ = false;
  int next_ = 0;
};

struct Star {
  explicit Star(uint64_t seed, int leaf_count = 1) : system({.seed = seed}) {
    hub = system.AddNode("hub", [this](NodeContext& context) {
      context.Spawn("hub", std::make_unique<Hub>(system.network(), context.node(), got));
    });
    for (int i = 0; i < leaf_count; ++i) {
      leaves.push_back(system.AddNode(fmt::format("leaf-{}", i), [this](NodeContext& context) {
        context.Spawn("leaf",
                      std::make_unique<Leaf>(system.network(), context.node(), hub, closes));
      }));
    }
    system.Start(hub);
    for (const NodeId leaf : leaves) system.Start(leaf);
  }

  SimulatedSystem system;
  NodeId hub;
  std::vector<NodeId> leaves;
  std::vector<std::string> got;     // received by the hub
  std::vector<std::string> closes;  // seen by the leaves
};

std::vector<std::string> Numbers(size_t count) {
  std::vector<std::string> numbers;
  for (size_t i = 0; i < count; ++i) numbers.push_back(std::to_string(i));
  return numbers;
}

TEST(SimulatedNetwork, DeliversAStreamsMessagesOnceAndInOrder) {
  Star star(1);
  star.system.RunFor(seconds(10));
  EXPECT_GT(star.got.size(), 900u);
  EXPECT_EQ(star.got, Numbers(star.got.size()));
  EXPECT_TRUE(star.closes.empty());
}

TEST(SimulatedNetwork, RefusesADialToANodeThatIsDown) {
  Star star(2);
  star.system.Crash(star.hub, CrashKind::kProcess);
  star.system.RunFor(milliseconds(500));
  EXPECT_EQ(star.closes, std::vector<std::string>{"UNAVAILABLE: connection refused"});
  EXPECT_TRUE(star.got.empty());
}

TEST(SimulatedNetwork, BreaksAStreamAtALostMessageAndDeliversNothingBehindIt) {
  Star star(3);
  star.system.RunFor(seconds(1));
  const size_t before = star.got.size();
  star.system.network().SetLoss(1);
  star.system.RunFor(milliseconds(900));
  EXPECT_EQ(star.closes, std::vector<std::string>{"UNAVAILABLE: connection reset"});
  EXPECT_LE(star.got.size(), before + 2);
  EXPECT_EQ(star.got.back(), "closed");
}

TEST(SimulatedNetwork, HoldsWhatABlockedLinkCarriesAndDeliversItLate) {
  Star star(4);
  star.system.RunFor(seconds(1));
  const size_t before = star.got.size();
  star.system.network().Block(star.leaves[0], star.hub);
  star.system.RunFor(seconds(5));
  EXPECT_EQ(star.got.size(), before);
  star.system.network().Unblock(star.leaves[0], star.hub);
  star.system.RunFor(milliseconds(100));
  EXPECT_GT(star.got.size(), before + 490);
  EXPECT_EQ(star.got, Numbers(star.got.size()));
}

TEST(SimulatedNetwork, NotifiesThePeerOfAKilledProcessSoonAndOfALostHostLate) {
  Star star(5);
  star.system.RunFor(seconds(1));
  star.system.Crash(star.hub, CrashKind::kProcess);
  star.system.RunFor(milliseconds(10));
  EXPECT_EQ(star.closes.size(), 1u);

  Star silent(5);
  silent.system.RunFor(seconds(1));
  silent.system.Crash(silent.hub, CrashKind::kHost);
  silent.system.RunFor(milliseconds(10));
  EXPECT_TRUE(silent.closes.empty());
  silent.system.RunFor(seconds(21));
  EXPECT_FALSE(silent.closes.empty());
}

TEST(SimulatedNetwork, DoublesMessagesInPlaceWhenAskedTo) {
  Star star(6);
  star.system.network().SetDuplication(1);
  star.system.RunFor(seconds(1));
  ASSERT_GT(star.got.size(), 10u);
  EXPECT_EQ(star.got[0], "0");
  EXPECT_EQ(star.got[1], "0");
  EXPECT_EQ(star.got[2], "1");
}

struct Outcome {
  uint64_t hash = 0;
  uint64_t events = 0;
  std::vector<std::string> faults;
  bool quiet_at_end = false;  // every leaf exchanges messages with the hub again
};

Outcome RunWithFaults(uint64_t seed) {
  Star star(seed, 8);
  FaultInjector faults(star.system, star.hub, star.leaves, {.seed = seed});
  faults.Begin();
  star.system.RunFor(seconds(90));
  const size_t closes = star.closes.size();
  const size_t got = star.got.size();
  star.system.RunFor(seconds(10));
  return {
      star.system.trace().hash(), star.system.trace().events(), faults.log(),
      faults.healed() && star.closes.size() == closes && star.got.size() > got + size_t{8} * 900};
}

TEST(FaultInjector, ReplaysASeedExactlyAndAnotherSeedDiffers) {
  const Outcome first = RunWithFaults(11);
  const Outcome again = RunWithFaults(11);
  const Outcome other = RunWithFaults(12);
  EXPECT_EQ(first.hash, again.hash);
  EXPECT_EQ(first.events, again.events);
  EXPECT_EQ(first.faults, again.faults);
  EXPECT_NE(first.hash, other.hash);
  EXPECT_GT(first.faults.size(), 5u);
}

TEST(FaultInjector, HealsEverythingAtTheEndOfItsPhase) {
  for (uint64_t seed = 20; seed < 30; ++seed) {
    EXPECT_TRUE(RunWithFaults(seed).quiet_at_end) << "seed " << seed;
  }
}

}  // namespace
}  // namespace troupe
