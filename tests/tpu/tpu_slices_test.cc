// Compiles the layouts of the tables (tests/layouts/axis_table.h, experts_job.h) for TPU v6e with
// libtpu (TROUPE_LIBTPU): the ranks of a stage as one program, with their collectives inside.
// Without libtpu every test is skipped with the reason.
#include <gtest/gtest.h>

#include <numeric>
#include <ostream>
#include <string>
#include <utility>
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
#include "tests/layouts/axis_table.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

using kernels::xla::StageCompiler;

struct Case {
  std::string name;
  v1::JobSpec job;
};

void PrintTo(const Case& of, std::ostream* out) { *out << of.name; }

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const auto& table : {AxesAlone(), PairsOfAxes(), MixesOfEight()}) {
    for (const AxisUses& uses : RowsOfSlices(table)) {
      v1::JobSpec job = SmallJob({}, "no-data", 1);
      SetAxes(uses, job.mutable_parallelism());
      cases.push_back({NameOf(uses), std::move(job)});
    }
  }
  for (const auto& table : {MixturesOfOneAxis(), MixturesOfTwoAxes(), MixturesOfEightRanks(),
                            MixturesThatGather(), MixturesBySchedule(), MixturesOnRings()}) {
    for (const Spread& spread : table) {
      // No slice has twelve chips.
      if (spread.shard == 3) continue;
      cases.push_back({"Mixture" + NameOf(spread), Mixture(spread, 1)});
    }
  }
  return cases;
}

class TpuSlices : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const StatusOr<std::string> path = kernels::xla::FindLibtpu();
    if (!path.ok()) GTEST_SKIP() << path.status();
  }
};

// The programs of the ranks of each stage.
StatusOr<std::vector<std::vector<model::Program>>> ProgramsOf(const v1::JobSpec& spec,
                                                              const v1::Plan& plan) {
  TROUPE_ASSIGN_OR_RETURN(const DecodedJob job, DecodeJob(spec));
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
    if (ranks.size() == 4 && stages->size() == 1) {
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
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe
