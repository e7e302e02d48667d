#include "plan/cost/stage_memo.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/bare_plan.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"
#include "plan/validate/stage_inputs.h"

namespace troupe {
namespace {

v1::DeviceProfile MemoProfile() {
  v1::DeviceProfile profile;
  profile.set_name("imagined");
  profile.set_memory_bytes(int64_t{1} << 40);
  profile.set_float32_flops_per_second(1e12);
  profile.set_matmul_efficiency(0.8);
  profile.set_memory_bytes_per_second(1e11);
  profile.set_launch_seconds(1e-6);
  profile.set_devices_per_island(3);
  for (v1::LinkProfile* link : {profile.mutable_island(), profile.mutable_fabric()}) {
    link->set_bytes_per_second(1e10);
    link->set_latency_seconds(1e-5);
  }
  profile.mutable_fabric()->set_bytes_per_second(1e9);
  return profile;
}

void ExpectEqual(const StageTime& memo, const StageTime& time) {
  ASSERT_EQ(memo.chunks.size(), time.chunks.size());
  for (size_t c = 0; c < time.chunks.size(); ++c) {
    EXPECT_EQ(memo.chunks[c].forward, time.chunks[c].forward);
    EXPECT_EQ(memo.chunks[c].input_gradient, time.chunks[c].input_gradient);
    EXPECT_EQ(memo.chunks[c].weight_gradient, time.chunks[c].weight_gradient);
  }
  EXPECT_EQ(memo.outside_schedule, time.outside_schedule);
  EXPECT_EQ(memo.compute, time.compute);
  EXPECT_EQ(memo.communication, time.communication);
}

TEST(StageMemo, ReturnsWhatTheProgramOfEachStageGives) {
  const v1::DeviceProfile profile = MemoProfile();
  v1::JobSpec spec;
  for (const char* key :
       {"model.preset=tiny", "model.pattern=(AD)x8", "model.tie_word_embeddings=true",
        "training={global_batch_size: 16, sequence_length: 64}",
        "parallelism={pipeline_parallel_degree: 4, tensor_parallel_degree: 2}"}) {
    ASSERT_TRUE(ApplyOverride(key, &spec).ok()) << key;
  }
  ApplyDefaults(&spec);
  const DecodedJob job = DecodeJob(spec).value();
  StageMemo stages(job, profile);
  // A program is built for a schedule that runs B, and is used for one that runs I and W apart.
  for (const char* schedule : {"1F1B", "ZBH1", "Interleaved1F1B", "ZBV", "DualPipeV"}) {
    SCOPED_TRACE(schedule);
    v1::JobSpec scheduled = spec;
    scheduled.mutable_parallelism()->set_pipeline_parallel_schedule(schedule);
    scheduled.mutable_parallelism()->clear_pipeline_parallel_chunks();
    ApplyDefaults(&scheduled);
    const DecodedJob scheduled_job = DecodeJob(scheduled).value();
    const auto bare = MakeBarePlan(scheduled_job, nullptr, EverySchedule());
    ASSERT_TRUE(bare.ok()) << bare.status();
    for (int pipe_rank = 0; pipe_rank < 4; ++pipe_rank) {
      const bool split = CountLiveMicrobatches(bare->schedule.actions[pipe_rank]).split_backward;
      const StageRun run = {pipe_rank, 16, split};
      const auto program = BuildStage(scheduled_job, bare->plan, pipe_rank);
      ASSERT_TRUE(program.ok()) << program.status();
      const auto time = stages.TimeOf(bare->plan, run);
      ASSERT_TRUE(time.ok()) << time.status();
      ExpectEqual(**time, TimeOfStage(bare->plan, profile, 1e12, run, *program));
      const auto memory = stages.MemoryOf(bare->plan, run);
      ASSERT_TRUE(memory.ok()) << memory.status();
      const StageMemory expected = MemoryOfStage(scheduled_job, bare->plan, *program, split);
      EXPECT_EQ((*memory)->fixed_bytes, expected.fixed_bytes);
      EXPECT_EQ((*memory)->saved_bytes, expected.saved_bytes);
    }
  }
}

TEST(StageMemo, RefusesTimesInADtypeThatTheProfileHasNoRateFor) {
  const v1::DeviceProfile profile = MemoProfile();
  v1::JobSpec spec;
  ASSERT_TRUE(ApplyOverride("model.preset=tiny", &spec).ok());
  ASSERT_TRUE(ApplyOverride("training.compute_dtype=bfloat16", &spec).ok());
  ApplyDefaults(&spec);
  const DecodedJob job = DecodeJob(spec).value();
  const auto bare = MakeBarePlan(job, nullptr, EverySchedule());
  ASSERT_TRUE(bare.ok()) << bare.status();
  StageMemo stages(job, profile);
  EXPECT_EQ(stages.TimeOf(bare->plan, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(stages.MemoryOf(bare->plan, {}).ok());
}

}  // namespace
}  // namespace troupe
