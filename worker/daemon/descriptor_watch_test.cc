#include "worker/daemon/descriptor_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace troupe {
namespace {

constexpr Duration kWaitLimit = std::chrono::seconds(20);

class DescriptorWatchTest : public ::testing::Test {
 protected:
  DescriptorWatchTest() { EXPECT_EQ(pipe(ends_), 0); }
  ~DescriptorWatchTest() override {
    close(ends_[0]);
    close(ends_[1]);
  }

  DescriptorWatch::Token Add(int descriptor) {
    return watch_.Add(descriptor, [this](unsigned events) {
      reports_.push_back(events);
      return room_ ? OkStatus() : ResourceExhausted("full");
    });
  }
  void Fill() { ASSERT_EQ(write(ends_[1], "x", 1), 1); }
  // One round without waiting.
  void Look() { watch_.Wait(Duration::zero()); }

  int ends_[2] = {-1, -1};
  bool room_ = true;
  std::vector<unsigned> reports_;
  DescriptorWatch watch_;
};

TEST_F(DescriptorWatchTest, ReportsOnceUntilArmedAgain) {
  const auto token = Add(ends_[0]);
  Fill();
  Look();
  EXPECT_TRUE(reports_.empty()) << "nothing is armed";
  watch_.Arm(token, DescriptorWatch::kReadable);
  watch_.Wait(kWaitLimit);
  EXPECT_EQ(reports_, std::vector<unsigned>{DescriptorWatch::kReadable});
  Fill();
  Look();
  EXPECT_EQ(reports_.size(), 1u) << "its owner has not read yet";
  watch_.Arm(token, DescriptorWatch::kReadable);
  watch_.Wait(kWaitLimit);
  EXPECT_EQ(reports_.size(), 2u);
}

TEST_F(DescriptorWatchTest, AReportThatItsOwnerHasNoRoomForIsRepeated) {
  watch_.Arm(Add(ends_[0]), DescriptorWatch::kReadable);
  Fill();
  room_ = false;
  watch_.Wait(kWaitLimit);
  watch_.Wait(kWaitLimit);
  EXPECT_EQ(reports_.size(), 2u);
  room_ = true;
  watch_.Wait(Duration::zero());
  EXPECT_EQ(reports_.size(), 3u);
  Look();
  EXPECT_EQ(reports_.size(), 3u);
}

TEST_F(DescriptorWatchTest, ARemovedDescriptorIsNeitherReportedNorArmed) {
  const auto token = Add(ends_[0]);
  watch_.Arm(token, DescriptorWatch::kReadable);
  Fill();
  watch_.Remove(token);
  watch_.Arm(token, DescriptorWatch::kReadable);
  Look();
  EXPECT_TRUE(reports_.empty());
}

TEST_F(DescriptorWatchTest, TheEndOfTheOtherSideIsReportedAsWhatIsArmed) {
  watch_.Arm(Add(ends_[0]), DescriptorWatch::kReadable);
  close(ends_[1]);
  ends_[1] = dup(ends_[0]);
  watch_.Wait(kWaitLimit);
  EXPECT_EQ(reports_, std::vector<unsigned>{DescriptorWatch::kReadable});
  Look();
  EXPECT_EQ(reports_.size(), 1u);
}

TEST_F(DescriptorWatchTest, WakeEndsAWait) {
  watch_.Wake();
  watch_.Wait(std::chrono::hours(1));
}

}  // namespace
}  // namespace troupe
