#include "plan/job/foreign_words.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "plan/job/key_schema.h"
#include "plan/job/validate_keys.h"
#include "plan/schedules/schedules.h"

namespace troupe {
namespace {

std::vector<std::string> WordsOfKey(std::string_view key) {
  if (key != "parallelism.pipeline_parallel_schedule") return WordsOf(KeyField(key));
  return {"1F1B", "GPipe", "Interleaved1F1B", "ZBH1", "ZBV", "DualPipeV"};
}

// The words that a build lacks, such as kinds of devices, are in the schema nevertheless.
TEST(ForeignWordsTest, ARowHasAWordOfItsKeyAndIsNoWordOfItself) {
  std::set<std::pair<std::string_view, std::string_view>> rows;
  for (const ForeignWord& row : ForeignWords()) {
    SCOPED_TRACE(row.word);
    EXPECT_TRUE(rows.emplace(row.key, row.word).second);
    EXPECT_TRUE(!row.here.empty() || !row.note.empty());
    const std::vector<std::string> words =
        WordsOfKey(row.key.empty() ? "training.compute_dtype" : row.key);
    EXPECT_EQ(std::ranges::count(words, row.word), 0);
    EXPECT_TRUE(row.here.empty() || std::ranges::count(words, row.here) == 1) << row.here;
  }
}

TEST(ForeignWordsTest, SchedulesOfTheTableAreKnown) {
  for (const std::string& name : WordsOfKey("parallelism.pipeline_parallel_schedule"))
    EXPECT_TRUE(FindSchedule(name).has_value()) << name;
}

TEST(ForeignWordsTest, AWordOfAnotherToolGetsItsNameHere) {
  EXPECT_EQ(ForeignWordText("devices", "gpu", "cpu, cuda, xla"), "; it is called cuda here");
  EXPECT_EQ(ForeignWordText("devices", "GPU", "cpu, cuda, xla"), "; it is called cuda here");
  EXPECT_EQ(ForeignWordText("devices", "gpu", "cpu"), "") << "this build has no such devices";
  EXPECT_EQ(ForeignWordText("optimizer.name", "adam", "adamw"),
            "; it is called adamw here: optimizer.weight_decay: 0 makes it Adam");
  EXPECT_EQ(ForeignWordText("optimizer.name", "adamw-torch", "adamw"), "; it is called adamw here");
  EXPECT_EQ(ForeignWordText("training.compute_dtype", "BF16", "float32, bfloat16"),
            "; it is called bfloat16 here");
  EXPECT_EQ(ForeignWordText("training.compute_dtype", "fp16", "float32, bfloat16"),
            "; no job trains in float16: bfloat16 needs no loss scale");
  EXPECT_EQ(ForeignWordText("devices", "bf16", "cpu, cuda, xla"), "");
  EXPECT_EQ(ForeignWordText("optimizer.name", "adagrad", "adamw"), "");
}

TEST(ForeignWordsTest, TheErrorOfAKeyHasIt) {
  v1::JobSpec spec;
  spec.mutable_optimizer()->set_name("adam");
  Violations violations;
  ValidateKeys(spec, JobPurpose::kPlan, &violations);
  ASSERT_EQ(violations.list().size(), 1u);
  EXPECT_EQ(violations.list()[0].description,
            fmt::format("is \"adam\", not one of {}; it is called adamw here: "
                        "optimizer.weight_decay: 0 makes it Adam",
                        fmt::join(WordsOf(KeyField("optimizer.name")), ", ")));
}

}  // namespace
}  // namespace troupe
