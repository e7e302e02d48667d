#include "coordinator/state/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/format/digest.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const TimeLimits kFleetLimits = MakeTimeLimits(3);
constexpr MonotonicTime kFleetStart{std::chrono::hours(1)};
constexpr uint64_t kLeader = 5;

v1::Hello HelloOf(const std::string& name, uint64_t incarnation, const std::string& host = "host") {
  v1::Hello hello;
  hello.set_protocol_version(2);
  hello.set_name(name);
  hello.set_incarnation(incarnation);
  hello.set_host(host);
  for (int index = 0; index < 2; ++index) {
    hello.add_devices()->set_index(index);
    hello.mutable_devices(index)->mutable_kind()->set_kind("cpu");
  }
  return hello;
}

HelloOutcome Accept(const v1::Hello& hello, SessionId session, Fleet* fleet,
                    MonotonicTime now = kFleetStart) {
  return AcceptHello(hello, session, kLeader, kFleetLimits, now, fleet);
}

v1::Plan PlanOn(const std::string& worker) {
  v1::Plan plan;
  for (int rank = 0; rank < 2; ++rank) {
    v1::RankPlacement* const placement = plan.add_ranks();
    placement->set_rank(rank);
    placement->set_worker(worker);
    placement->set_device(rank);
  }
  return plan;
}

TEST(Fleet, RefusesAHelloThatIsWrongForGood) {
  struct Case {
    const char* what;
    void (*spoil)(v1::Hello*);
    StatusCode code;
  };
  const Case cases[] = {
      {"protocol_version", [](v1::Hello* hello) { hello->set_protocol_version(3); },
       StatusCode::kFailedPrecondition},
      {"name", [](v1::Hello* hello) { hello->set_name("a/b"); }, StatusCode::kInvalidArgument},
      {"name", [](v1::Hello* hello) { hello->clear_name(); }, StatusCode::kInvalidArgument},
      {"incarnation", [](v1::Hello* hello) { hello->set_incarnation(0); },
       StatusCode::kInvalidArgument},
      {"index", [](v1::Hello* hello) { hello->mutable_devices(1)->set_index(0); },
       StatusCode::kInvalidArgument},
      {"kind", [](v1::Hello* hello) { hello->mutable_devices(1)->clear_kind(); },
       StatusCode::kInvalidArgument},
      {"host: \"h\\nworker-9\" has the control character U+000A",
       [](v1::Hello* hello) { hello->set_host("h\nworker-9"); }, StatusCode::kInvalidArgument},
      {"island: \"\\u001b[2J\" has", [](v1::Hello* hello) { hello->set_island("\x1b[2J"); },
       StatusCode::kInvalidArgument},
      {"metrics_address", [](v1::Hello* hello) { hello->set_metrics_address("\u0085"); },
       StatusCode::kInvalidArgument},
      {"devices: id", [](v1::Hello* hello) { hello->mutable_devices(0)->set_id("\u202e"); },
       StatusCode::kInvalidArgument},
      {"leader_epoch_seen", [](v1::Hello* hello) { hello->set_leader_epoch_seen(kLeader + 1); },
       StatusCode::kFailedPrecondition},
  };
  for (const Case& test : cases) {
    Fleet fleet;
    v1::Hello hello = HelloOf("a", 1);
    test.spoil(&hello);
    const HelloOutcome outcome = Accept(hello, 1, &fleet);
    EXPECT_EQ(outcome.refused.code(), test.code) << test.what;
    EXPECT_THAT(std::string(Message(outcome.refused)), HasSubstr(test.what));
    EXPECT_FALSE(outcome.retry);
    EXPECT_THAT(fleet.workers, IsEmpty());
  }
}

TEST(Fleet, ACondemnedDeviceIsOfferedToNobody) {
  Fleet fleet;
  ASSERT_TRUE(Accept(HelloOf("a", 10), 1, &fleet).refused.ok());
  v1::DeviceCondemned condemned;
  condemned.set_device(1);
  condemned.set_reason("Xid 79");
  EXPECT_TRUE(CondemnDevice(condemned, FindBySession(1, &fleet)));
  for (const bool free_only : {true, false}) {
    const ClusterView view = ListDevices(fleet, free_only);
    ASSERT_EQ(view.free_devices.size(), 1u);
    EXPECT_EQ(view.free_devices[0].device.index(), 0);
  }
  condemned.set_device(7);
  EXPECT_FALSE(CondemnDevice(condemned, FindBySession(1, &fleet)));
  // A new life of the daemon reports its devices again.
  CloseSession(1, kFleetStart, &fleet);
  ASSERT_TRUE(Accept(HelloOf("a", 11), 2, &fleet).refused.ok());
  EXPECT_EQ(ListDevices(fleet, true).free_devices.size(), 2u);
}

TEST(Fleet, ASecondLifeWaitsWhileTheFirstOnesStreamIsOpen) {
  Fleet fleet;
  ASSERT_TRUE(Accept(HelloOf("a", 10), 1, &fleet).refused.ok());
  const HelloOutcome second = Accept(HelloOf("a", 11), 2, &fleet);
  EXPECT_EQ(second.refused.code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(second.retry);
  CloseSession(1, kFleetStart, &fleet);
  const HelloOutcome later = Accept(HelloOf("a", 11), 3, &fleet);
  EXPECT_TRUE(later.refused.ok());
  EXPECT_TRUE(later.new_life);
}

TEST(Fleet, ALifeOnAnotherHostWaitsUntilTheOldOneIsLost) {
  Fleet fleet;
  ASSERT_TRUE(Accept(HelloOf("a", 10, "here"), 1, &fleet).refused.ok());
  CloseSession(1, kFleetStart, &fleet);
  EXPECT_TRUE(Accept(HelloOf("a", 11, "there"), 2, &fleet).retry);
  std::vector<SessionId> closed;
  CatalogBatch writes;
  const MonotonicTime later = kFleetStart + kFleetLimits.reconnect_grace;
  EXPECT_THAT(ExpireWorkers(kFleetLimits, later, &fleet, &closed, &writes), ElementsAre("a"));
  EXPECT_TRUE(Accept(HelloOf("a", 11, "there"), 3, &fleet, later).new_life);
}

TEST(Fleet, AnOlderLifeIsRefusedForGood) {
  Fleet fleet;
  ASSERT_TRUE(Accept(HelloOf("a", 10), 1, &fleet).refused.ok());
  const HelloOutcome older = Accept(HelloOf("a", 9), 2, &fleet);
  EXPECT_EQ(older.refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(older.retry);
}

TEST(Fleet, TheSameLifeMayOpenANewStream) {
  Fleet fleet;
  ASSERT_TRUE(Accept(HelloOf("a", 10), 1, &fleet).refused.ok());
  const HelloOutcome again = Accept(HelloOf("a", 10), 2, &fleet);
  EXPECT_TRUE(again.refused.ok());
  EXPECT_FALSE(again.new_life);
  EXPECT_EQ(again.replaced_session, 1u);
  EXPECT_EQ(FindBySession(1, &fleet), nullptr);
  EXPECT_NE(FindBySession(2, &fleet), nullptr);
  EXPECT_EQ(CloseSession(1, kFleetStart, &fleet), "");
}

TEST(Fleet, AStreamOfTheSameLifeIsRefusedWithoutItsKey) {
  Fleet fleet;
  v1::Hello hello = HelloOf("a", 10);
  hello.set_life_key("secret");
  ASSERT_TRUE(Accept(hello, 1, &fleet).refused.ok());
  for (const bool is_open : {true, false}) {
    if (!is_open) CloseSession(1, kFleetStart, &fleet);
    for (const char* key : {"", "guess"}) {
      v1::Hello forged = hello;
      forged.set_life_key(key);
      const HelloOutcome outcome = Accept(forged, 2, &fleet);
      EXPECT_EQ(outcome.refused.code(), StatusCode::kAlreadyExists) << outcome.refused;
      EXPECT_TRUE(outcome.retry);
      EXPECT_EQ(fleet.workers.at("a").session, is_open ? 1u : 0u);
    }
  }
  EXPECT_TRUE(Accept(hello, 3, &fleet).refused.ok());
}

TEST(Fleet, ALeaseHasADigestOfTheKeyOfTheLifeThatHoldsIt) {
  Fleet fleet;
  v1::Hello hello = HelloOf("a", 10);
  hello.set_life_key("secret");
  ASSERT_TRUE(Accept(hello, 1, &fleet).refused.ok());
  EXPECT_THAT(fleet.workers.at("a").hello.life_key(), IsEmpty());
  CatalogBatch writes;
  LeaseDevices(PlanOn("a"), "job", 1, &fleet, &writes);
  const std::string digest = fleet.leases.at({"a", 0}).life_key_digest();
  EXPECT_TRUE(IsSha256(digest)) << digest;
  // The next life has another key.
  CloseSession(1, kFleetStart, &fleet);
  hello.set_incarnation(11);
  hello.set_life_key("another secret");
  ASSERT_TRUE(Accept(hello, 2, &fleet).refused.ok());
  ReleaseNotHeld("a", hello, &fleet, &writes);
  LeaseDevices(PlanOn("a"), "job", 2, &fleet, &writes);
  EXPECT_NE(fleet.leases.at({"a", 0}).life_key_digest(), digest);
}

TEST(Fleet, ALifeWithLeasesOfAnOlderCoordinatorStatesItsKeyInItsFirstStream) {
  Fleet fleet;
  Worker& recovered = fleet.workers["a"];  // from its leases, which have no digest
  recovered.name = "a";
  recovered.incarnation = 10;
  recovered.lost = true;
  v1::Hello hello = HelloOf("a", 10);
  hello.set_life_key("secret");
  EXPECT_TRUE(Accept(hello, 1, &fleet).refused.ok());
  hello.set_life_key("guess");
  EXPECT_EQ(Accept(hello, 2, &fleet).refused.code(), StatusCode::kAlreadyExists);
}

TEST(Fleet, AWorkerIsLostWhenItsLeaseEndsAndForgottenMuchLater) {
  Fleet fleet;
  ASSERT_TRUE(Accept(HelloOf("a", 10), 1, &fleet).refused.ok());
  CatalogBatch writes;
  LeaseDevices(PlanOn("a"), "job", 1, &fleet, &writes);
  std::vector<SessionId> closed;
  EXPECT_EQ(NextExpiry(kFleetLimits, fleet), kFleetStart + kFleetLimits.lease);
  EXPECT_THAT(ExpireWorkers(kFleetLimits, kFleetStart + kFleetLimits.lease - Duration(1), &fleet,
                            &closed, &writes),
              IsEmpty());
  EXPECT_THAT(
      ExpireWorkers(kFleetLimits, kFleetStart + kFleetLimits.lease, &fleet, &closed, &writes),
      ElementsAre("a"));
  EXPECT_THAT(closed, ElementsAre(1u));
  EXPECT_EQ(fleet.leases.size(), 2u);
  const MonotonicTime much_later = kFleetStart + kFleetLimits.lease + kFleetLimits.forget_worker;
  EXPECT_THAT(ExpireWorkers(kFleetLimits, much_later, &fleet, &closed, &writes), IsEmpty());
  EXPECT_THAT(fleet.workers, IsEmpty());
  EXPECT_THAT(fleet.leases, IsEmpty());
}

TEST(Fleet, ALeasedDeviceIsNotFreeUntilItsRanksDeathIsConfirmed) {
  Fleet fleet;
  CatalogBatch writes;
  ASSERT_TRUE(Accept(HelloOf("a", 10), 1, &fleet).refused.ok());
  LeaseDevices(PlanOn("a"), "job", 3, &fleet, &writes);
  EXPECT_THAT(ListDevices(fleet, true).free_devices, IsEmpty());
  EXPECT_EQ(ListDevices(fleet, false).free_devices.size(), 2u);
  EXPECT_FALSE(ReleaseRank("a", "job", 2, 0, &fleet, &writes));
  EXPECT_FALSE(ReleaseRank("b", "job", 3, 0, &fleet, &writes));
  EXPECT_TRUE(ReleaseRank("a", "job", 3, 0, &fleet, &writes));
  EXPECT_EQ(ListDevices(fleet, true).free_devices.size(), 1u);
}

TEST(Fleet, AHelloFreesWhatItDoesNotHold) {
  Fleet fleet;
  CatalogBatch writes;
  v1::Hello hello = HelloOf("a", 10);
  ASSERT_TRUE(Accept(hello, 1, &fleet).refused.ok());
  LeaseDevices(PlanOn("a"), "job", 3, &fleet, &writes);
  v1::HeldGroup* const held = hello.add_held();
  held->set_job("job");
  held->set_group_epoch(3);
  held->add_ranks(1);
  const std::vector<v1::LeaseRecord> released = ReleaseNotHeld("a", hello, &fleet, &writes);
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].rank(), 0);
  // A new life holds nothing of the old one, regardless of its Hello.
  hello.set_incarnation(11);
  EXPECT_EQ(ReleaseNotHeld("a", hello, &fleet, &writes).size(), 1u);
  EXPECT_THAT(fleet.leases, IsEmpty());
}

}  // namespace
}  // namespace troupe
