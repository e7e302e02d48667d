#include "worker/daemon/device_actor.h"

#include <gtest/gtest.h>

#include <vector>

namespace troupe {
namespace {

DeviceObservation Observation(int index, Health health = Health::kHealthy) {
  DeviceObservation observation;
  observation.index = index;
  observation.verdict.health = health;
  return observation;
}

// A mailbox that is full if the test sets it so.
class ObservationSenderTest : public ::testing::Test {
 protected:
  bool is_full_ = false;
  std::vector<DeviceObservation> accepted_;
  ObservationSender sender_{[this](AnyMessage message) {
    if (is_full_) return ResourceExhausted("full");
    accepted_.push_back(message.As<DeviceObserved>()->observation);
    return OkStatus();
  }};
};

TEST_F(ObservationSenderTest, AnObservationWithoutRoomIsPassedWithTheNext) {
  is_full_ = true;
  sender_.Send(Observation(1));
  sender_.Send(Observation(2));
  EXPECT_EQ(sender_.kept(), 2u);
  is_full_ = false;
  sender_.Send(Observation(3));
  EXPECT_EQ(sender_.kept(), 0u);
  ASSERT_EQ(accepted_.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(accepted_[static_cast<size_t>(i)].index, i + 1);
}

TEST_F(ObservationSenderTest, OfTooManyOnlyRoutineOnesAreDropped) {
  is_full_ = true;
  sender_.Send(Observation(1, Health::kReplaceRank));
  DeviceObservation with_event = Observation(2);
  with_event.events.emplace_back();
  sender_.Send(with_event);
  for (size_t i = 0; i < ObservationSender::kKeptMax + 10; ++i) sender_.Send(Observation(3));
  EXPECT_EQ(sender_.kept(), ObservationSender::kKeptMax);
  is_full_ = false;
  sender_.Send(Observation(4));
  ASSERT_EQ(accepted_.size(), ObservationSender::kKeptMax + 1);
  EXPECT_EQ(accepted_[0].index, 1);
  EXPECT_EQ(accepted_[1].index, 2);
  EXPECT_EQ(accepted_.back().index, 4);
}

}  // namespace
}  // namespace troupe
