// Compiles the layouts of tests/layouts/xla_slices_test.cc, with the ranks of a stage as one
// program and their collectives inside, for TPU v6e with libtpu (TROUPE_LIBTPU). Without libtpu
// every test is skipped with the reason.
#include <gtest/gtest.h>

#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/xla/compile/stage_compiler.h"
#include "kernels/xla/pjrt/plugin_path.h"
#include "model/build.h"
#include "model/program/memory_plan.h"
#include "plan/device/tpu_model.h"
#include "plan/device/tpu_slice.h"
#include "plan/layout/mesh.h"
#include "plan/make_plan.h"
#include "plan/validate/stage_inputs.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

using kernels::xla::StageCompiler;

struct Case {
  const char* name;
  v1::JobSpec job;
};

void PrintTo(const Case& of, std::ostream* out) { *out << of.name; }

v1::JobSpec Dense(const Layout& layout) {
  v1::JobSpec job = SmallJob(layout, "no-data", 1);
  job.mutable_model()->set_pattern("AD");
  return job;
}

v1::JobSpec Experts(const Spread& spread) {
  v1::JobSpec job = Mixture(spread, 1);
  job.mutable_model()->set_pattern("AE");
  return job;
}

std::vector<Case> Cases() {
  return {{"Data2", Dense({.data = 2})},
          {"Data4", Dense({.data = 4})},
          {"Tensor2", Dense({.tensor = 2})},
          {"Tensor4", Dense({.tensor = 4})},
          {"Tensor2Rows", Dense({.tensor = 2, .by_rows = true})},
          {"Pipe2", Dense({.pipe = 2})},
          {"Pipe2ZBH1", Dense({.pipe = 2, .schedule = "ZBH1"})},
          {"Zero1Shard2", Dense({.shard = 2, .zero_stage = 1})},
          {"Zero2Shard2", Dense({.shard = 2, .zero_stage = 2})},
          {"Zero3Shard2", Dense({.shard = 2, .zero_stage = 3})},
          {"Zero3Shard4", Dense({.shard = 4, .zero_stage = 3})},
          {"Ring2", Dense({.context = 2})},
          {"Heads2", Dense({.context = 2, .exchanges_heads = true})},
          {"Zero3Shard2Tensor2", Dense({.tensor = 2, .shard = 2, .zero_stage = 3})},
          {"Tensor2Pipe2", Dense({.tensor = 2, .pipe = 2})},
          {"Data2Ring2", Dense({.data = 2, .context = 2})},
          {"Expert2", Experts({.expert = 2})},
          {"Expert2Gathers", Experts({.expert = 2, .gathers = true})},
          {"Expert4", Experts({.expert = 4})},
          {"Expert2Tensor2Rows", Experts({.expert = 2, .tensor = 2, .by_rows = true})}};
}

class TpuSlices : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const StatusOr<std::string> path = kernels::xla::FindLibtpu();
    if (!path.ok()) GTEST_SKIP() << path.status();
  }
};

// The programs of the ranks of each stage.
StatusOr<std::vector<std::vector<model::Program>>> ProgramsOf(const v1::JobSpec& job,
                                                              const v1::Plan& plan) {
  std::vector<std::vector<model::Program>> stages(static_cast<size_t>(plan.mesh().pipe()));
  for (int rank = 0; rank < plan.ranks_size(); ++rank) {
    TROUPE_ASSIGN_OR_RETURN(const model::BuildOptions options,
                            MakeStageBuildOptions(job, plan, rank));
    TROUPE_ASSIGN_OR_RETURN(model::Program program, model::BuildProgram(options));
    const int stage = options.mesh.coordinates[model::Axis::kPipe];
    stages[static_cast<size_t>(stage)].push_back(std::move(program));
  }
  return stages;
}

TEST_P(TpuSlices, AreCompiled) {
  const auto plan = MakeUnplacedPlan(GetParam().job, nullptr);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto stages = ProgramsOf(GetParam().job, *plan);
  ASSERT_TRUE(stages.ok()) << stages.status();
  const TpuModel& model = *FindTpuModel("TPU v6 lite");
  const auto slice = SliceFor(model, static_cast<int>(stages->front().size()));
  ASSERT_TRUE(slice.ok()) << slice.status();
  auto compiler = StageCompiler::Make(fmt::format("{}:{}", model.generation, *slice),
                                      std::string(model.model), {});
  ASSERT_TRUE(compiler.ok()) << compiler.status();
  for (int pipe_rank = 0; pipe_rank < std::ssize(*stages); ++pipe_rank) {
    std::vector<const model::Program*> ranks;
    for (const model::Program& program : (*stages)[static_cast<size_t>(pipe_rank)])
      ranks.push_back(&program);
    const auto live = CountLiveMicrobatches(*plan, pipe_rank);
    ASSERT_TRUE(live.ok()) << live.status();
    const model::MemoryPlan memory =
        model::PlanMemory(*ranks[0], live->of_chunk, live->split_backward, /*threads=*/1);
    std::vector<int> devices(ranks.size());
    std::iota(devices.begin(), devices.end(), 0);
    const auto compiled = compiler->Compile(ranks, devices, memory, {}, [](const std::string&) {});
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    EXPECT_GT(compiled->programs, 0);
    if (ranks.size() == 4) {
      // None is cut: unshard at most, a microbatch, reduction with update, and initialisation.
      EXPECT_LE(compiled->programs, 4);
      const auto whole = compiler->Compile(ranks, devices, memory,
                                           {.single_microbatch = true, .reads_gradients = false},
                                           [](const std::string&) {});
      ASSERT_TRUE(whole.ok()) << whole.status();
      EXPECT_LE(whole->programs, 2);  // a step and the initialisation
      EXPECT_LT(whole->values_bytes, compiled->values_bytes);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, TpuSlices, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace troupe
