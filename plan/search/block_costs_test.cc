#include "plan/search/block_costs.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/bare_plan.h"
#include "plan/cost/stage_cost.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"

namespace troupe {
namespace {

v1::DeviceProfile BlockProfile() {
  v1::DeviceProfile profile;
  profile.set_float32_flops_per_second(1e12);
  profile.set_matmul_efficiency(0.8);
  profile.set_memory_bytes_per_second(1e11);
  profile.set_launch_seconds(1e-6);
  profile.set_devices_per_island(2);
  for (v1::LinkProfile* link : {profile.mutable_island(), profile.mutable_fabric()}) {
    link->set_bytes_per_second(1e10);
    link->set_latency_seconds(1e-5);
  }
  profile.mutable_fabric()->set_bytes_per_second(1e9);
  return profile;
}

v1::JobSpec BlockJob(const std::vector<std::string>& overrides) {
  v1::JobSpec spec;
  std::vector<std::string> all = {"model.preset=tiny",
                                  "training={global_batch_size: 4, sequence_length: 64}"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  for (const std::string& override : all)
    EXPECT_TRUE(ApplyOverride(override, &spec).ok()) << override;
  ApplyDefaults(&spec);
  return spec;
}

// Compares the costs of every chunk of a plan with those measured on the programs of its stages.
void Compare(const v1::JobSpec& spec) {
  const v1::DeviceProfile profile = BlockProfile();
  const LeastSeconds seconds(profile, 1e12, /*is_aligned=*/true);
  const DecodedJob job = DecodeJob(spec).value();
  const auto costs = BlockCosts::Measure(job, seconds);
  ASSERT_TRUE(costs.ok()) << costs.status();
  const auto bare = MakeBarePlan(job, nullptr, EverySchedule());
  ASSERT_TRUE(bare.ok()) << bare.status();
  for (const auto& chunk : bare->plan.chunks()) {
    const auto program = BuildStage(job, bare->plan, chunk.pipe_rank());
    ASSERT_TRUE(program.ok()) << program.status();
    ASSERT_EQ(program->chunks.size(), 1u);
    Work forward, backward;
    const Mesh mesh(program->mesh.degrees);
    seconds.Add(*program, mesh, program->Ops(0, model::Piece::kForward), &forward);
    seconds.Add(*program, mesh, program->Ops(0, model::Piece::kBackward), &backward);
    const ChunkCosts found = costs->Of(chunk.blocks(), chunk.has_embedding(), chunk.has_head());
    SCOPED_TRACE(chunk.blocks());
    for (const auto& [of_blocks, of_program] :
         {std::pair(found.forward, forward), std::pair(found.backward, backward)}) {
      EXPECT_NEAR(of_blocks.compute, of_program.compute, 1e-9 * of_program.compute);
      EXPECT_NEAR(of_blocks.waits, of_program.waits, 1e-9 * of_program.compute);
      EXPECT_NEAR(of_blocks.within, of_program.within, 1e-9 * of_program.compute);
      EXPECT_NEAR(of_blocks.across, of_program.across, 1e-9 * of_program.compute);
    }
    const StageMemory memory = MemoryOfStage(job, bare->plan, *program, false);
    EXPECT_LE(found.saved_bytes, static_cast<double>(memory.saved_bytes[0]));
    EXPECT_GT(found.saved_bytes, 0.8 * static_cast<double>(memory.saved_bytes[0]));
  }
}

TEST(BlockCosts, AreThoseOfThePrograms) {
  for (const char* pattern : {"(AD)x4", "AADDADDDADAA", "A", "DDA"}) {
    for (const char* mode : {"none", "selective", "full"}) {
      SCOPED_TRACE(mode);
      Compare(BlockJob({std::string("model.pattern=") + pattern,
                        std::string("activation_recomputation.mode=") + mode}));
    }
  }
  for (const char* schedule : {"1F1B", "GPipe"}) {
    Compare(BlockJob({"model.pattern=AADDADDDADAA", "parallelism.pipeline_parallel_degree=4",
                      "activation_recomputation.mode=full",
                      std::string("parallelism.pipeline_parallel_schedule=") + schedule}));
  }
  for (const char* layout :
       {"{tensor_parallel_degree: 4, sequence_parallel: true}", "{tensor_parallel_degree: 2}",
        "{context_parallel_degree: 2}", "{tensor_parallel_degree: 2, tensor_parallel_parts: 2}",
        "{context_parallel_degree: 2, context_parallel_method: all_to_all}"}) {
    SCOPED_TRACE(layout);
    Compare(BlockJob({std::string("parallelism=") + layout}));
  }
}

TEST(BlockCosts, OfALongRingAreThoseOfThePrograms) {
  for (const char* context : {"16", "64"}) {
    for (const char* mode : {"none", "selective", "full"}) {
      SCOPED_TRACE(std::string(context) + " " + mode);
      Compare(BlockJob({"training.sequence_length=1024", "model.pattern=AAD",
                        std::string("parallelism.context_parallel_degree=") + context,
                        std::string("activation_recomputation.mode=") + mode}));
    }
  }
  Compare(BlockJob({"training.sequence_length=1024", "model.pattern=AADD",
                    "parallelism={context_parallel_degree: 32, tensor_parallel_degree: 2, "
                    "sequence_parallel: true}"}));
}

}  // namespace
}  // namespace troupe
