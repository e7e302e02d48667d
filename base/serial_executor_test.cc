#include "base/serial_executor.h"

#include <future>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(SerialExecutor, RunsTasksInOrder) {
  std::vector<int> ran;
  std::promise<void> last;
  SerialExecutor executor(100);
  for (int task = 0; task < 10; ++task)
    EXPECT_TRUE(executor.Run([&, task] { ran.push_back(task); }));
  EXPECT_TRUE(executor.Run([&] { last.set_value(); }));
  ASSERT_EQ(last.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_THAT(ran, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(SerialExecutor, TakesNoMoreThanMayWaitAndNoneOnceItHasStopped) {
  std::promise<void> begun, go;
  SerialExecutor executor(1);
  ASSERT_TRUE(executor.Run([&] {
    begun.set_value();
    go.get_future().wait_for(std::chrono::seconds(30));
  }));
  ASSERT_EQ(begun.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_TRUE(executor.Run([] {}));
  EXPECT_FALSE(executor.Run([] {}));
  go.set_value();
  executor.Stop();
  EXPECT_FALSE(executor.Run([] {}));
  executor.Stop();
}

}  // namespace
}  // namespace troupe
