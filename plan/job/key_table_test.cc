#include "plan/job/key_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

TEST(KeyTableTest, ARowHasTypeDefaultRangeAndWords) {
  const std::vector<KeyRow> steps = KeyTable("training.steps");
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].type, "integer");
  EXPECT_EQ(steps[0].default_value, "1000");
  EXPECT_EQ(steps[0].range, "[1, 2^40]");
  const std::vector<KeyRow> recipe = KeyTable("training.float8");
  ASSERT_EQ(recipe.size(), 1u);
  EXPECT_EQ(recipe[0].key, "training.float8.recipe");
  EXPECT_THAT(recipe[0].words, ElementsAre("none", "delayed", "current", "blockwise"));
}

TEST(KeyTableTest, TheLimitOfAListIsThatOfItsEntries) {
  const std::vector<KeyRow> groups = KeyTable("xla.option_groups");
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].type, "list of at most 32 texts");
  EXPECT_EQ(groups[0].range, "");
  EXPECT_EQ(KeyTable("optimizer.no_weight_decay")[0].type, "list of texts");
}

TEST(KeyTableTest, APrefixEndsAtADot) {
  EXPECT_THAT(KeyTable("data.blend"), ElementsAre(Field(&KeyRow::key, "data.blend[].path"),
                                                  Field(&KeyRow::key, "data.blend[].weight")));
  EXPECT_THAT(KeyTable("data.validation"), ElementsAre(Field(&KeyRow::key, "data.validation")));
  EXPECT_TRUE(KeyTable("data.bl").empty());
  EXPECT_GT(KeyTable("").size(), 90u);
}

TEST(KeyTableTest, NamesOfPresetsAndSchedulesAreThoseOfTheCode) {
  EXPECT_THAT(KeyTable("model.preset")[0].words,
              ElementsAre("tiny", "llama-124m", "llama-1b", "llama-8b"));
  EXPECT_THAT(KeyTable("parallelism.pipeline_parallel_schedule")[0].words,
              testing::Contains("Interleaved1F1B"));
}

TEST(KeyTableTest, TheTextOfAKeyIsPlain) {
  EXPECT_EQ(KeyTableToText(KeyTable("training.steps")),
            "training.steps: integer in [1, 2^40], default 1000\n    Steps of the job.\n");
  EXPECT_THAT(KeyTableToText(KeyTable("training.float8.recipe")),
              testing::StartsWith("training.float8.recipe: text, one of none delayed current "
                                  "blockwise, default none\n    "));
  EXPECT_THAT(KeyTableToText(KeyTable("data.blend[].path")), testing::HasSubstr("text, required"));
}

// Tests run in the root of the source tree.
TEST(KeyTableTest, ThePageOfTheDocumentationIsThisTable) {
  std::ifstream file("docs/job-keys.md");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), KeyTableToMarkdown(KeyTable("")))
      << "make it again: troupe keys --markdown > docs/job-keys.md";
}

}  // namespace
}  // namespace troupe
