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
  int64_t kept_bytes = 0;
};

Written Write(int tensor, bool split_backward, const StepUse& use = {}, int live = 1,
              int64_t tokens = 11) {
  model::MeshView mesh;
  mesh.degrees[Axis::kTensor] = tensor;
  Written written;
  written.program =
      model::BuildProgram(model::StageOptions(model::SmallModel("ADAD"), mesh, 3, tokens)).value();
  written.plan = model::PlanMemory(written.program, {live}, split_backward, 1);
  const auto stage = StagePrograms::Make({&written.program});
  EXPECT_TRUE(stage.ok()) << stage.status();
  auto modules = WriteStagePrograms(*stage, written.plan, use);
  EXPECT_TRUE(modules.ok()) << modules.status();
  if (modules.ok()) {
    written.programs = std::move(modules->programs);
    written.kept_bytes = modules->kept_bytes;
  }
  return written;
}

std::set<std::string> Pieces(const Written& written) {
  std::set<std::string> pieces;
  for (const StageProgram& program : written.programs)
    pieces.insert(program.name.substr(0, program.name.find(',')));
  return pieces;
}

const StageProgram* Find(const Written& written, const std::string& name) {
  const auto found = std::ranges::find_if(written.programs, [&](const StageProgram& program) {
    return program.name.starts_with(name + ",");
  });
  return found == written.programs.end() ? nullptr : &*found;
}

TEST(StageModules, OfOneRankAreOneForEachGroupOfPieces) {
  const Written written = Write(1, false);
  EXPECT_EQ(Pieces(written).size(), written.programs.size());
  EXPECT_FALSE(Pieces(written).contains("chunk 0 weight_gradient"));
  for (const StageProgram& program : written.programs) {
    EXPECT_THAT(program.module, StartsWith("module @troupe"));
    // No value passes from one program of a group to another.
    EXPECT_EQ(program.piece_bytes, 0) << program.name;
  }
  const StageProgram* const microbatch = Find(written, "chunk 0 forward to backward");
  ASSERT_NE(microbatch, nullptr);
  // Its results are sums, whose memory exists before it runs.
  EXPECT_EQ(microbatch->new_result_bytes, 0);
  EXPECT_GT(microbatch->argument_bytes, 0);
}

TEST(StageModules, OfTwoLiveMicrobatchesHaveForwardAndBackwardApart) {
  const Written written = Write(1, false, {}, /*live=*/2);
  EXPECT_EQ(Find(written, "chunk 0 forward to backward"), nullptr);
  EXPECT_NE(Find(written, "chunk 0 forward"), nullptr);
  EXPECT_NE(Find(written, "chunk 0 backward"), nullptr);
  // Saved values exist between them.
  EXPECT_GT(written.kept_bytes, Write(1, false).kept_bytes);
}

TEST(StageModules, OfASingleMicrobatchAreOneThatKeepsNoGradients) {
  const Written sums = Write(1, false, {.single_microbatch = true, .reads_gradients = true});
  const Written whole = Write(1, false, {.single_microbatch = true, .reads_gradients = false});
  for (const Written* written : {&sums, &whole}) {
    const auto in_step = std::ranges::count_if(written->programs, &StageProgram::runs_in_step);
    EXPECT_EQ(in_step, 1);
  }
  int64_t gradients = 0;
  for (const model::ParameterEntry& entry : whole.program.parameters)
    gradients += whole.program.value(entry.gradient).bytes();
  EXPECT_EQ(sums.kept_bytes - whole.kept_bytes, gradients);
}

// The head of more than 1,024 rows has several chunks, which write views of one saved value.
TEST(StageModules, TakeNoArgumentForAValueThatOnlyTheyUse) {
  const StepUse use = {.single_microbatch = true, .reads_gradients = false};
  const Written written = Write(1, false, use, /*live=*/1, /*tokens=*/800);
  const auto step = std::ranges::find_if(written.programs, &StageProgram::runs_in_step);
  ASSERT_NE(step, written.programs.end());
  EXPECT_LE(step->argument_bytes, written.kept_bytes);
}

TEST(StageModules, AreCutAtCollectivesBetweenRanks) {
  const Written one = Write(1, false), two = Write(2, false);
  EXPECT_GT(two.programs.size(), one.programs.size());
  // The values that pass through a collective are on the device between two programs.
  const bool passes = std::ranges::any_of(
      two.programs, [](const StageProgram& program) { return program.piece_bytes > 0; });
  EXPECT_TRUE(passes);
  const auto microbatch = std::ranges::count_if(two.programs, [](const StageProgram& program) {
    return program.name.starts_with("chunk 0 forward to backward");
  });
  EXPECT_GT(microbatch, 8);  // a sum after each of the four blocks, in both directions
}

TEST(StageModules, OfASplitBackwardAreBothHalves) {
  const Written joined = Write(1, true), apart = Write(1, true, {}, /*live=*/2);
  EXPECT_NE(Find(joined, "chunk 0 forward to weight_gradient"), nullptr);
  EXPECT_EQ(Find(apart, "chunk 0 backward"), nullptr);
  EXPECT_NE(Find(apart, "chunk 0 input_gradient"), nullptr);
}

}  // namespace
}  // namespace troupe::kernels::xla
