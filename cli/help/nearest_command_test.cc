#include "cli/help/nearest_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> NearestTo(const std::vector<std::string>& arguments) {
  return NearestCommands(
      arguments, {"up", "down", "submit", "list", "workers", "workers drain", "data prepare",
                  "data show", "checkpoints list", "checkpoints show", "checkpoints export"});
}

TEST(NearestCommandTest, AMisspeltCommandIsFound) {
  EXPECT_THAT(NearestTo({"sumbit", "job.yaml"}), ElementsAre("submit"));
  EXPECT_THAT(NearestTo({"lst"}), ElementsAre("list"));
  EXPECT_THAT(NearestTo({"donw", "--data-dir", "x"}), ElementsAre("down"));
  EXPECT_THAT(NearestTo({"checkpoints", "exprot", "a"}), ElementsAre("checkpoints export"));
  EXPECT_THAT(NearestTo({"chekpoint", "lst"}), ElementsAre("checkpoints list"));
}

TEST(NearestCommandTest, TwoWordsAreNearerThanTheFirstOneAlone) {
  EXPECT_THAT(NearestTo({"worker", "drain"}), ElementsAre("workers drain"));
  EXPECT_THAT(NearestTo({"worker", "-o"}), ElementsAre("workers"));
}

TEST(NearestCommandTest, ASecondWordAloneFindsItsCommands) {
  EXPECT_THAT(NearestTo({"export", "a"}), ElementsAre("checkpoints export"));
  EXPECT_THAT(NearestTo({"shwo"}), ElementsAre("data show", "checkpoints show"));
  EXPECT_THAT(NearestCommands({"export"}, {"report", "checkpoints export"}),
              ElementsAre("checkpoints export"));
}

TEST(NearestCommandTest, AMisspeltGroupIsFound) {
  EXPECT_THAT(NearestTo({"checkpoint"}), ElementsAre("checkpoints"));
  EXPECT_THAT(NearestTo({"checkpoint", "nothing-like-it"}), ElementsAre("checkpoints"));
}

TEST(NearestCommandTest, NothingIsNearToAWordOfItsOwn) {
  EXPECT_THAT(NearestTo({"no-such-command"}), IsEmpty());
  EXPECT_THAT(NearestTo({"zz"}), IsEmpty());
  EXPECT_THAT(NearestTo({""}), IsEmpty());
}

}  // namespace
}  // namespace troupe
