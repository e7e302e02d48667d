#include "worker/executor/action_runs.h"

#include <gtest/gtest.h>

#include <string>

#include "model/build.h"
#include "model/testing.h"

namespace troupe {
namespace {

model::Program TwoChunks(bool interleaves) {
  model::MeshView mesh;
  mesh.degrees[model::Axis::kExpert] = 2;
  model::BuildOptions options = model::StageOptions(model::SmallMixture("AEAE"), mesh, 2, 8);
  options.chunks = {{0, 0, 2, true, false}, {1, 2, 2, false, true}};
  options.interleaves_pairs = interleaves;
  return model::BuildProgram(options).value();
}

ActionList Actions() {
  return MakeActions({"F0.0", "F1.0", "F0.1|B1.0", "F1.1|B0.0", "B1.1", "I0.1", "W0.1"}, {0, 1}, 2,
                     2)
      .value();
}

TEST(ActionRunsTest, APairThatIsNotInterleavedRunsOneActionAfterTheOther) {
  const ActionList list = Actions();
  const std::vector<ActionRun> runs = RunsOf(list, TwoChunks(false));
  ASSERT_EQ(runs.size(), list.actions.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].action, static_cast<int>(i));
    EXPECT_TRUE(runs[i].begins && runs[i].ends);
  }
}

TEST(ActionRunsTest, EveryActionOfAPairBeginsOnceEndsOnceAndRunsWhole) {
  const model::Program program = TwoChunks(true);
  const ActionList list = Actions();
  std::vector<int> reached(list.actions.size()), begun(reached), ended(reached);
  std::string order;
  for (const ActionRun& run : RunsOf(list, program)) {
    const auto action = static_cast<size_t>(run.action);
    EXPECT_EQ(run.begin, reached[action]);
    reached[action] = run.end;
    begun[action] += run.begins;
    ended[action] += run.ends;
    order += fmt::format("{} ", run.action);
  }
  for (size_t i = 0; i < list.actions.size(); ++i) {
    SCOPED_TRACE(ToText(list.actions[i]));
    const RankAction& action = list.actions[i];
    EXPECT_EQ(reached[i], static_cast<int>(program.Ops(action.chunk_index, action.piece).size()));
    EXPECT_EQ(begun[i], 1);
    EXPECT_EQ(ended[i], 1);
  }
  // F0.1 is action 2, the I and W of its pair are 3 and 4: F and I alternate, W comes after I, and
  // the next pair comes after all of them.
  EXPECT_NE(order.find("2 3 2 3 "), std::string::npos) << order;
  EXPECT_LT(order.rfind("3 "), order.find(" 4 ") + 1) << order;
  EXPECT_LT(order.rfind(" 4 "), order.find(" 5 ")) << order;
}

}  // namespace
}  // namespace troupe
