#include "worker/rank/affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace troupe {
namespace {

using ::testing::ElementsAre;

TEST(Affinity, AProcessIsBoundWithAllItsThreadsAndThoseThatTheyStart) {
  const std::vector<int> before = AllowedCores();
  std::promise<void> go;
  std::vector<int> of_old;
  std::vector<int> of_later;
  std::thread old([&] {
    go.get_future().wait();
    of_old = AllowedCores();
    std::thread later([&] { of_later = AllowedCores(); });
    later.join();
  });
  ASSERT_TRUE(PinThisProcess({before.back()}).ok());
  go.set_value();
  old.join();
  EXPECT_THAT(AllowedCores(), ElementsAre(before.back()));
  EXPECT_THAT(of_old, ElementsAre(before.back()));
  EXPECT_THAT(of_later, ElementsAre(before.back()));
  ASSERT_TRUE(PinThisProcess(before).ok());
  EXPECT_EQ(AllowedCores(), before);
}

}  // namespace
}  // namespace troupe
