#include "base/limited_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>

namespace troupe {
namespace {

using ::testing::HasSubstr;

TEST(LimitedCalls, GiveWhatTheCallReturns) {
  LimitedCalls calls(1);
  EXPECT_EQ(calls.Run([] { return OkStatus(); }, std::chrono::minutes(1), "a"), OkStatus());
  EXPECT_EQ(calls.Run([] { return DataLoss("b"); }, std::chrono::minutes(1), "a").code(),
            StatusCode::kDataLoss);
}

TEST(LimitedCalls, LeaveBehindWhatHangsAndRefuseMoreThanTheBound) {
  LimitedCalls calls(2);
  const auto release = std::make_shared<std::promise<void>>();
  const std::shared_future<void> released = release->get_future().share();
  const auto hangs = [released] {
    released.wait();
    return OkStatus();
  };
  for (int i = 0; i < 2; ++i) {
    const Status status = calls.Run(hangs, std::chrono::milliseconds(1), "look at /data");
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(Message(status)), HasSubstr("look at /data did not return within"));
  }
  const Status third = calls.Run([] { return OkStatus(); }, std::chrono::minutes(1), "a");
  EXPECT_EQ(third.code(), StatusCode::kAborted);
  EXPECT_THAT(std::string(Message(third)), HasSubstr("2 earlier calls have not returned"));
  release->set_value();
  Status later = third;
  while (later.code() == StatusCode::kAborted) {
    later = calls.Run([] { return OkStatus(); }, std::chrono::minutes(1), "a");
  }
  EXPECT_EQ(later, OkStatus());
}

}  // namespace
}  // namespace troupe
