#include "worker/rank/rank_backend.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(RankBackendTest, AKindWithoutABackendIsRefused) {
  EXPECT_TRUE(MakeRankBackend({}).ok());
  for (const char* kind : {"tpu", ""}) {
    const auto made = MakeRankBackend({.devices = kind});
    EXPECT_EQ(made.status().code(), StatusCode::kUnimplemented) << kind;
    EXPECT_EQ(Message(made.status()), fmt::format("ranks cannot run on devices \"{}\"", kind));
  }
}

// So that a job that is replaced, or that is submitted again, has the same bits.
TEST(RankBackendTest, AllJobsOfAWorkerShareItsTuning) {
  v1::BeginRank begin;
  begin.mutable_start()->mutable_plan()->add_ranks();
  begin.set_log_path("/logs/one/rank-0.worker-0.log");
  begin.set_tuning_directory("/data/tuning");
  EXPECT_EQ(MakeRankBackendOptions(begin, 1).tuning_folder, "/data/tuning");
}

TEST(RankBackendTest, TheCompilerGetsThePlansOptionsAndTheWorkersFolder) {
  v1::BeginRank begin;
  begin.mutable_start()->mutable_plan()->add_ranks();
  begin.mutable_start()->mutable_plan()->add_compiler_options("xla_a=1");
  begin.set_executable_directory("/data/executables");
  const RankBackendOptions options = MakeRankBackendOptions(begin, 1);
  EXPECT_EQ(options.executable_folder, "/data/executables");
  EXPECT_EQ(options.compiler_options, std::vector<std::string>{"xla_a=1"});
}

TEST(RankBackendTest, TheDeviceKnowsWhichNumbersTheHostReads) {
  v1::BeginRank begin;
  begin.mutable_start()->mutable_plan()->add_ranks();
  v1::JobSpec& spec = *begin.mutable_start()->mutable_spec();
  EXPECT_FALSE(MakeRankBackendOptions(begin, 1).reads_gradients);
  EXPECT_FALSE(MakeRankBackendOptions(begin, 1).evaluates);
  spec.mutable_training()->set_norms_interval(50);
  spec.mutable_data()->set_validation_fraction(0.1);
  EXPECT_TRUE(MakeRankBackendOptions(begin, 1).reads_gradients);
  EXPECT_TRUE(MakeRankBackendOptions(begin, 1).evaluates);
  spec.mutable_data()->clear_validation_fraction();
  spec.mutable_data()->set_validation("held-out");
  EXPECT_TRUE(MakeRankBackendOptions(begin, 1).evaluates);
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
