#include "plan/job/unknown_key.h"

#include <gtest/gtest.h>

#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/job.pb.h"

namespace troupe {
namespace {

std::string TextFor(std::string_view path) {
  return UnknownKeyText(*v1::JobSpec::descriptor(), path);
}

TEST(UnknownKeyTest, TheNearestKeyIsNamed) {
  EXPECT_EQ(TextFor("training.stepz"), "; the nearest known key is training.steps");
  EXPECT_EQ(TextFor("model.zzz"), "");
}

TEST(UnknownKeyTest, AKeyInTheWrongSectionIsFound) {
  EXPECT_EQ(TextFor("model.weight_decay"), "; the nearest known key is optimizer.weight_decay");
  EXPECT_EQ(TextFor("optimizer.seed"), "; it is called training.seed here");
}

TEST(UnknownKeyTest, MeaningPrecedesSpelling) {
  // activation_recomputation.num_layers is spelled the same.
  EXPECT_EQ(TextFor("model.num_layers"),
            "; it is called model.pattern here: \"(AD)x4\" has 4 layers");
}

TEST(UnknownKeyTest, AMisspeltNameOfAnotherToolPrecedesANearKey) {
  EXPECT_EQ(TextFor("model.numlayers"),
            "; it is called model.pattern here: \"(AD)x4\" has 4 layers");
  EXPECT_EQ(TextFor("optimizer.learningrate"), "; it is called optimizer.lr here");
  EXPECT_EQ(TextFor("model.global_batch_size"),
            "; the nearest known key is training.global_batch_size")
      << "a key in the wrong section";
}

TEST(UnknownKeyTest, AKeyOfTheSectionThatIsALetterAwayPrecedesAMisspeltName) {
  EXPECT_EQ(TextFor("activation_recomputation.num_layer"),
            "; the nearest known key is activation_recomputation.num_layers");
  EXPECT_NE(TextFor("data.num_workers"), TextFor("training.num_workers"));
}

TEST(UnknownKeyTest, NamesOfOtherToolsAreThoseOfJobsOnly) {
  EXPECT_EQ(UnknownKeyText(*v1::DeviceProfile::descriptor(), "learning_rate"), "");
}

}  // namespace
}  // namespace troupe
