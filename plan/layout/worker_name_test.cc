#include "plan/layout/worker_name.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

TEST(WorkerName, HasLettersDigitsAndThreeSignsOnly) {
  for (const char* good : {"worker-0", "a", "Rack_7.node-3", "...", ".a"})
    EXPECT_TRUE(CheckWorkerName(good).ok());
  EXPECT_TRUE(CheckWorkerName(std::string(253, 'a')).ok());
  for (const std::string& bad :
       {std::string("a b"), std::string(), std::string("a/b"), std::string("a\n"),
        std::string(254, 'a'), std::string("."), std::string("..")}) {
    EXPECT_EQ(CheckWorkerName(bad).code(), StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace troupe
