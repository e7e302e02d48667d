#include "worker/rank/directives.h"

#include <gtest/gtest.h>

#include <thread>

namespace troupe {
namespace {

constexpr MonotonicTime kNow{std::chrono::seconds(100)};

v1::CheckpointIntent Intent(int64_t attempt, int64_t step) {
  v1::CheckpointIntent intent;
  intent.set_attempt(attempt);
  intent.set_step(step);
  intent.set_path("/checkpoints");
  return intent;
}

v1::Ticket Ticket(int64_t end_step, std::vector<v1::CheckpointIntent> intents = {}) {
  v1::Ticket ticket;
  ticket.set_end_step(end_step);
  ticket.set_lifetime_seconds(60);
  for (auto& intent : intents) *ticket.add_intents() = intent;
  return ticket;
}

StepResult Result(int64_t step, bool intent_known, int64_t request_attempt) {
  StepResult result;
  result.step = step;
  result.intent_known = intent_known;
  result.request_attempt = request_attempt;
  return result;
}

TEST(Directives, TheDevicesOfAllRanksAreWaitedFor) {
  Directives directives;
  v1::DeviceBook book;
  for (const int rank : {1, 0}) {
    v1::RankDevice& device = *book.add_devices();
    device.set_rank(rank);
    device.set_id(10 + rank);
  }
  std::thread control([&] { directives.SetDevices(book); });
  const auto devices = directives.WaitForDevices();
  control.join();
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ((*devices)[1].id(), 11);
  directives.Stop(Cancelled("by the test"));
  EXPECT_EQ(directives.WaitForDevices().status().code(), StatusCode::kCancelled);
}

TEST(Directives, ATicketsEndNeverMovesBackAndItsLifetimeIsRenewed) {
  Directives directives;
  EXPECT_FALSE(directives.expires_at().has_value());
  directives.AddTicket(Ticket(50), kNow);
  directives.AddTicket(Ticket(40), kNow + std::chrono::seconds(10));
  EXPECT_EQ(*directives.WaitForTicket(50), 50);
  EXPECT_EQ(*directives.expires_at(), kNow + std::chrono::seconds(70));
}

TEST(Directives, AStepBeyondTheTicketWaitsForTheNextOne) {
  Directives directives;
  directives.AddTicket(Ticket(5), kNow);
  std::thread control([&] { directives.AddTicket(Ticket(9), kNow); });
  EXPECT_EQ(*directives.WaitForTicket(6), 9);
  control.join();
}

TEST(Directives, EveryWaitEndsWithTheStop) {
  Directives directives;
  directives.AddTicket(Ticket(5), kNow);
  std::thread control([&] { directives.Stop(Aborted("gone")); });
  EXPECT_EQ(directives.WaitForTicket(6).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(directives.WaitForAddresses().status().code(), StatusCode::kCancelled);
  EXPECT_EQ(directives.stopped()->code(), StatusCode::kAborted);
  EXPECT_FALSE(directives.Pause(std::chrono::hours(1)));
  control.join();
}

TEST(Directives, APauseIsAsLongAsItStates) {
  const Directives directives;
  EXPECT_TRUE(directives.Pause(std::chrono::milliseconds(1)));
}

TEST(Directives, ARankThatIsSavingDoesNotKnowOfADueCheckpointButOfTheLastOne) {
  Directives directives;
  v1::CheckpointIntent last = Intent(2, 20);
  last.set_then_stop(true);
  directives.AddTicket(Ticket(50, {Intent(1, 10), last}), kNow);
  EXPECT_FALSE(directives.InputsFor(10, true).intent_known);
  EXPECT_TRUE(directives.InputsFor(20, true).intent_known);
}

TEST(Directives, ADueCheckpointIsTakenOnlyIfEveryRankKnowsOfIt) {
  Directives directives;
  directives.AddTicket(Ticket(50, {Intent(1, 10), Intent(2, 20)}), kNow);
  EXPECT_TRUE(directives.InputsFor(10, false).intent_known);
  EXPECT_FALSE(directives.InputsFor(11, false).intent_known);
  EXPECT_TRUE(directives.CheckpointsAfter(Result(10, false, 0)).empty());
  const auto taken = directives.CheckpointsAfter(Result(20, true, 0));
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].attempt(), 2);
}

TEST(Directives, WhatIsDueALagAfterAStepComesWithItsWordOrIsAgreedOnLater) {
  Directives directives;
  directives.AddTicket(Ticket(50, {Intent(1, 10), Intent(2, 11), Intent(3, 12)}), kNow);
  const auto taken = directives.CheckpointsAfter(Result(9, true, 0), 1);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].step(), 10);
  // Another rank did not know the intent for step 11 when control word 10 was made; the intent is
  // kept.
  EXPECT_TRUE(directives.CheckpointsAfter(Result(10, false, 0), 1).empty());
  EXPECT_TRUE(directives.InputsFor(11, false).intent_known);
  EXPECT_EQ(directives.PopDue(11).attempt(), 2);
  EXPECT_FALSE(directives.InputsFor(11, false).intent_known);
  EXPECT_EQ(directives.CheckpointsAfter(Result(11, true, 0), 1).front().attempt(), 3);
}

TEST(Directives, AnAskedForCheckpointIsTakenOnceWhenAllRanksKnowIt) {
  Directives directives;
  directives.AddTicket(Ticket(50), kNow);
  directives.AddRequest(Intent(3, 0));
  EXPECT_EQ(directives.InputsFor(7, false).request_attempt, 3);
  EXPECT_TRUE(directives.CheckpointsAfter(Result(7, false, 0)).empty());
  EXPECT_EQ(directives.CheckpointsAfter(Result(8, false, 3)).size(), 1u);
  EXPECT_TRUE(directives.CheckpointsAfter(Result(9, false, 3)).empty());
}

TEST(Directives, AnAttemptThatThisRankDoesNotKnowHasNoPath) {
  Directives directives;
  directives.AddTicket(Ticket(50), kNow);
  directives.AddRequest(Intent(4, 0));
  const auto taken = directives.CheckpointsAfter(Result(8, false, 3));
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].attempt(), 3);
  EXPECT_TRUE(taken[0].path().empty());
}

TEST(Directives, AfterTheLastStepOnlyANewerAttemptOfItIsTaken) {
  Directives directives;
  directives.AddTicket(Ticket(10, {Intent(1, 5), Intent(2, 10)}), kNow);
  directives.CheckpointsAfter(Result(10, true, 0));
  // The ticket is resent with an intent that was already taken.
  directives.AddTicket(Ticket(10, {Intent(2, 10)}), kNow);
  std::thread control([&] { directives.AddRequest(Intent(4, 10)); });
  EXPECT_EQ(directives.WaitForLastOrder(10, 2)->save->attempt(), 4);
  control.join();
  EXPECT_FALSE(directives.expires_at().has_value()) << "it runs no more steps";
  std::thread image([&] { directives.OrderImage(10); });
  const auto order = directives.WaitForLastOrder(10, 4);
  ASSERT_TRUE(order.has_value());
  EXPECT_FALSE(order->save.has_value()) << "an image";
  image.join();
  std::thread stop([&] { directives.Stop(OkStatus()); });
  EXPECT_FALSE(directives.WaitForLastOrder(10, 4).has_value());
  stop.join();
}

}  // namespace
}  // namespace troupe
