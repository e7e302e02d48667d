#include "worker/rank/rank_backend.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(RankBackendTest, AKindWithoutABackendIsRefused) {
  EXPECT_TRUE(MakeRankBackend({}).ok());
  for (const char* kind : {"xla", "tpu", ""}) {
    const auto made = MakeRankBackend({.devices = kind});
    EXPECT_EQ(made.status().code(), StatusCode::kUnimplemented) << kind;
    EXPECT_EQ(Message(made.status()), fmt::format("ranks cannot run on devices \"{}\"", kind));
  }
}

TEST(RankBackendTest, AJobThatNamesNoDevicesUsesTheDefault) {
  v1::BeginRank begin;
  begin.mutable_start()->mutable_plan()->add_ranks();
  EXPECT_EQ(MakeRankBackendOptions(begin, 1).devices, "cpu");
  begin.mutable_start()->mutable_spec()->set_devices("xla");
  EXPECT_EQ(MakeRankBackendOptions(begin, 1).devices, "xla");
}

}  // namespace
}  // namespace troupe
