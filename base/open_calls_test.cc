#include "base/open_calls.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

namespace troupe {
namespace {

constexpr Duration kLimit = std::chrono::seconds(60);
constexpr Duration kNoWait = Duration::zero();

TEST(OpenCalls, AreOverWhenTheLastCopyIsReleased) {
  OpenCalls calls;
  EXPECT_TRUE(calls.Wait(kNoWait));
  std::shared_ptr<void> first = calls.Begin();
  std::shared_ptr<void> second = calls.Begin();
  std::shared_ptr<void> copy = first;
  first.reset();
  second.reset();
  EXPECT_FALSE(calls.Wait(kNoWait));
  copy.reset();
  EXPECT_TRUE(calls.Wait(kNoWait));
}

TEST(OpenCalls, EndAWaitFromAnotherThread) {
  OpenCalls calls;
  std::thread other([call = calls.Begin()]() mutable { call.reset(); });
  EXPECT_TRUE(calls.Wait(kLimit));
  other.join();
}

TEST(OpenCalls, MayOutliveWhatCountsThem) {
  auto calls = std::make_unique<OpenCalls>();
  std::shared_ptr<void> call = calls->Begin();
  calls.reset();
  call.reset();
}

}  // namespace
}  // namespace troupe
