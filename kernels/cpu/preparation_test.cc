#include "kernels/cpu/preparation.h"

#include <gtest/gtest.h>

#include "model/build.h"
#include "model/testing.h"

namespace troupe::kernels::cpu {
namespace {

// `troupe plan` prints the plan's size, and admission relies on it.
TEST(Preparation, TheArenaIsNoLargerThanThePlanStates) {
  for (const model::DType compute : {model::DType::kFloat32, model::DType::kBFloat16}) {
    for (const int threads : {1, 2}) {
      for (const int64_t tokens : {64, 256, 1024}) {
        model::ModelConfig config = model::Llama124m();
        config.blocks = "AD";
        model::BuildOptions options = model::StageOptions(config, {}, 4, tokens);
        options.compute_dtype = compute;
        const model::Program program = model::BuildProgram(options).value();
        const model::MemoryPlan plan = model::PlanMemory(program, {2}, false, threads);
        for (int level = static_cast<int>(Level::kAvx512);
             level <= static_cast<int>(HighestLevel()); ++level) {
          const FindCommunicator none;
          Preparation preparation(program, plan, none, static_cast<Level>(level), threads);
          ASSERT_TRUE(preparation.Measure().ok());
          EXPECT_LE(preparation.arena_bytes(), plan.total_bytes() + (4 << 20))
              << model::Name(compute) << " " << tokens << " tokens, " << threads << " threads";
        }
      }
    }
  }
}

}  // namespace
}  // namespace troupe::kernels::cpu
