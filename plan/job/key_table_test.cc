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

TEST(KeyTableTest, AnIndexMayBeLeftOut) {
  for (const char* const key : {"data.blend[].weight", "data.blend[2].weight", "data.blend.weight"})
    EXPECT_THAT(KeyTable(key), ElementsAre(Field(&KeyRow::key, "data.blend[].weight"))) << key;
  EXPECT_EQ(KeyTable("data.blend[]").size(), 2u);
  EXPECT_TRUE(KeyTable("data.blend[0").empty());
}

TEST(KeyTableTest, AMisspeltKeyOrSectionGetsTheNearestOne) {
  const auto text = [](std::string_view prefix) {
    EXPECT_TRUE(KeyTable(prefix).empty()) << prefix;
    EXPECT_EQ(NoSuchKey(prefix).code(), StatusCode::kInvalidArgument);
    return std::string(Message(NoSuchKey(prefix)));
  };
  EXPECT_EQ(text("trainin"),
            "trainin: the job file has no such key or section; the nearest known key is training");
  EXPECT_EQ(text("training.stepz"),
            "training.stepz: the job file has no such key or section; the nearest known key is "
            "training.steps");
  EXPECT_THAT(text("data.blend[].weigth"), testing::EndsWith(" is data.blend.weight"));
  EXPECT_THAT(text("learning_rate"), testing::EndsWith("; it is called optimizer.lr here"));
  EXPECT_EQ(text("zzz"), "zzz: the job file has no such key or section; `troupe keys` lists all");
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

TEST(KeyTableTest, ATextThatIsTooWideIsBroken) {
  const KeyRow row = {.key = "a.b", .type = "text", .words = {"one", "two"}, .doc = "It is long."};
  EXPECT_EQ(KeyTableToText({row}, 21),
            "a.b: text, one of one\n"
            "        two\n"
            "    It is long.\n");
  EXPECT_EQ(KeyTableToText({row}, 12),
            "a.b: text,\n"
            "        one\n"
            "        of\n"
            "        one\n"
            "        two\n"
            "    It is\n"
            "    long.\n");
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
