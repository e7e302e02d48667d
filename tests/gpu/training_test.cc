#include "tests/gpu/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/temporary_directory.h"
#include "data/llmc_token_file.h"
#include "kernels/cpu/cpu_backend.h"

namespace troupe {
namespace {

TEST(BareTraining, LearnsSyntheticTokens) {
  PosixFileSystem files;
  auto backend = kernels::CpuBackend::Make({2, std::nullopt}).value();
  const TrainingOptions options{.preset = "tiny",
                                .batch = 8,
                                .micro_batch = 4,
                                .sequence = 64,
                                .steps = 20,
                                .learning_rate = 3e-3,
                                .dtype = "float32"};
  std::vector<TrainingStep> steps;
  const auto keep = [&](const TrainingStep& step) { steps.push_back(step); };
  const Status trained = Train(*backend, files, options, keep);
  ASSERT_TRUE(trained.ok()) << trained;
  ASSERT_EQ(steps.size(), 20u);
  EXPECT_NEAR(steps[0].loss, std::log(259.0), 0.5);  // a uniform guess among 259 ids
  EXPECT_LT(steps[19].loss, steps[0].loss - 0.5);
  EXPECT_EQ(steps[19].step, 20);
  EXPECT_EQ(steps[0].tokens, 8 * 64);
  EXPECT_GT(steps[0].flops, 0);
}

TEST(BareTraining, HasTheSameLossesWhereStepsAreSubmittedAhead) {
  PosixFileSystem files;
  std::vector<double> losses[2];
  for (const std::string devices : {"cpu", "cuda"}) {
    auto backend = kernels::CpuBackend::Make({1, std::nullopt}).value();
    const TrainingOptions options{.preset = "tiny",
                                  .devices = devices,
                                  .batch = 2,
                                  .micro_batch = 2,
                                  .sequence = 32,
                                  .steps = 4,
                                  .dtype = "float32"};
    const Status trained = Train(*backend, files, options, [&](const TrainingStep& step) {
      losses[devices == "cuda"].push_back(step.loss);
    });
    ASSERT_TRUE(trained.ok()) << trained;
  }
  EXPECT_EQ(losses[0].size(), 4u);
  EXPECT_EQ(losses[1], losses[0]);
}

TEST(BareTraining, TrainsOtherLayersAndInFloat8) {
  PosixFileSystem files;
  auto backend = kernels::CpuBackend::Make({2, std::nullopt}).value();
  double flops = 0;
  const TrainingOptions options{.preset = "tiny",
                                .pattern = "AD",
                                .batch = 2,
                                .micro_batch = 2,
                                .sequence = 32,
                                .steps = 2,
                                .float8 = "current"};
  const Status trained =
      Train(*backend, files, options, [&](const TrainingStep& step) { flops = step.flops; });
  ASSERT_TRUE(trained.ok()) << trained;
  EXPECT_THAT(backend->fallbacks(), testing::Contains(testing::HasSubstr("float8")));
  TrainingOptions whole = options;
  whole.pattern.clear();
  ASSERT_TRUE(Train(*backend, files, whole, [&](const TrainingStep& step) {
                EXPECT_GT(step.flops, 2 * flops);
              }).ok());
}

TEST(BareTraining, TheJobOfEachModelThatTheBenchmarkMeasuresIsComplete) {
  for (const char* preset : {"llama-124m", "llama-1b", "llama-8b"}) {
    const auto job = BareTrainingJob(
        {.preset = preset, .pattern = "AD", .devices = "cuda", .data = "/not/read"});
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->model().pattern(), "AD");
    EXPECT_EQ(job->data().train(), "/not/read");
  }
}

TEST(BareTraining, NamesWhatCannotBe) {
  PosixFileSystem files;
  auto backend = kernels::CpuBackend::Make({1, std::nullopt}).value();
  const auto ignore = [](const TrainingStep&) {};
  EXPECT_EQ(Train(*backend, files, {.preset = "huge"}, ignore).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Train(*backend, files, {.preset = "tiny", .batch = 3, .micro_batch = 2}, ignore).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Train(*backend, files, {.preset = "tiny", .float8 = "half"}, ignore).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Train(*backend, files, {.preset = "tiny", .pattern = "(AQ)x2"}, ignore).code(),
            StatusCode::kInvalidArgument);
}

TEST(SyntheticTokens, AreThoseOfTheirSeedAndFollowFromEachOther) {
  PosixFileSystem files;
  const TemporaryDirectory directory;
  for (const int64_t vocabulary : {int64_t{259}, int64_t{128256}}) {
    const std::string path = directory.Child("tokens.bin");
    ASSERT_TRUE(WriteSyntheticTokens(files, path, 10000, vocabulary, 5).ok());
    const auto file = LlmcTokenFile::Open(files, path);
    ASSERT_TRUE(file.ok()) << file.status();
    std::vector<int32_t> ids(10000), again(10000);
    ASSERT_TRUE(file->tokens().Read(0, vocabulary, ids).ok());
    int following = 0;
    const int64_t used = std::min<int64_t>(vocabulary, 4096);
    for (size_t i = 1; i < ids.size(); ++i) {
      ASSERT_LT(ids[i], used);
      following += ids[i] == (31 * ids[i - 1] + 7) % used;
    }
    EXPECT_NEAR(following, 7500, 300);
    ASSERT_TRUE(WriteSyntheticTokens(files, path, 10000, vocabulary, 5).ok());
    ASSERT_TRUE(LlmcTokenFile::Open(files, path)->tokens().Read(0, vocabulary, again).ok());
    EXPECT_EQ(ids, again);
  }
}

}  // namespace
}  // namespace troupe
