#include "kernels/xla/compile/stage_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "model/build.h"
#include "model/testing.h"

namespace troupe::kernels::xla {
namespace {

using model::Axis;
using testing::StartsWith;

struct Written {
  model::Program program;
  model::MemoryPlan plan;
  std::vector<StageProgram> programs;
};

Written Write(int tensor, bool split_backward) {
  model::MeshView mesh;
  mesh.degrees[Axis::kTensor] = tensor;
  Written written;
  written.program =
      model::BuildProgram(model::StageOptions(model::SmallModel("ADAD"), mesh, 3, 11)).value();
  written.plan = model::PlanMemory(written.program, {1}, split_backward, 1);
  const auto stage = StagePrograms::Make({&written.program});
  EXPECT_TRUE(stage.ok()) << stage.status();
  auto programs = WriteStagePrograms(*stage, written.plan);
  EXPECT_TRUE(programs.ok()) << programs.status();
  if (programs.ok()) written.programs = *std::move(programs);
  return written;
}

std::set<std::string> Pieces(const Written& written) {
  std::set<std::string> pieces;
  for (const StageProgram& program : written.programs)
    pieces.insert(program.name.substr(0, program.name.find(',')));
  return pieces;
}

TEST(StageModules, OfOneRankAreOneForEachPiece) {
  const Written written = Write(1, false);
  EXPECT_EQ(Pieces(written).size(), written.programs.size());
  EXPECT_TRUE(Pieces(written).contains("chunk 0 forward"));
  EXPECT_TRUE(Pieces(written).contains("chunk 0 backward"));
  EXPECT_FALSE(Pieces(written).contains("chunk 0 weight_gradient"));
  for (const StageProgram& program : written.programs) {
    EXPECT_THAT(program.module, StartsWith("module @troupe"));
    // No value passes from one program of a piece to another.
    EXPECT_EQ(program.piece_bytes, 0) << program.name;
  }
  const auto forward = std::ranges::find_if(written.programs, [](const StageProgram& program) {
    return program.name.starts_with("chunk 0 forward");
  });
  ASSERT_NE(forward, written.programs.end());
  // Its results are saved values and the totals, whose memory exists before it runs.
  EXPECT_EQ(forward->new_result_bytes, 0);
  EXPECT_GT(forward->argument_bytes, 0);
}

TEST(StageModules, AreCutAtCollectivesBetweenRanks) {
  const Written one = Write(1, false), two = Write(2, false);
  EXPECT_GT(two.programs.size(), one.programs.size());
  // The values that pass through a collective are on the device between two programs.
  const bool passes = std::ranges::any_of(
      two.programs, [](const StageProgram& program) { return program.piece_bytes > 0; });
  EXPECT_TRUE(passes);
  const auto forward = std::ranges::count_if(two.programs, [](const StageProgram& program) {
    return program.name.starts_with("chunk 0 forward");
  });
  EXPECT_GT(forward, 4);  // a sum after each of the four blocks
}

TEST(StageModules, OfASplitBackwardAreBothHalves) {
  const std::set<std::string> whole = Pieces(Write(1, false)), halves = Pieces(Write(1, true));
  EXPECT_FALSE(halves.contains("chunk 0 backward"));
  EXPECT_GE(halves.size(), whole.size());
}

}  // namespace
}  // namespace troupe::kernels::xla
