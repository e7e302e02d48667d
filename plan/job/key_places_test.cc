#include "plan/job/key_places.h"

#include <gtest/gtest.h>

#include "plan/job/violation.h"

namespace troupe {
namespace {

constexpr char kOtherUrl[] = "troupe/other";

KeyPlaces Places() {
  return {{"training.steps", "job.yaml:3:5"},
          {"data.blend", "job.yaml:7:3"},
          {"data.blend[0].path", "job.yaml:8:7"},
          {"optimizer.lr", "--set optimizer.lr"}};
}

Status Refused() {
  Violations violations;
  violations.AddOutOfRange("training.steps", -1, "[1, 2^40]");
  violations.Add("data.blend[0].path", "is required");
  violations.Add("data.blend[1]", "is bad");
  violations.Add("data.blend[1].path", "is required");
  violations.Add("optimizer.lr", "is 0");
  violations.Add("name", "is required");
  return violations.ToStatus(StatusCode::kFailedPrecondition);
}

TEST(KeyPlacesTest, AViolationNamesThePlaceOfItsKeyIfItIsStated) {
  const Status placed = WithPlaces(Refused(), Places());
  EXPECT_EQ(placed.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(placed),
            "training.steps is -1, not in [1, 2^40] (job.yaml:3:5)\n"
            "data.blend[0].path is required (job.yaml:8:7)\n"
            "data.blend[1] is bad (job.yaml:7:3)\n"
            "data.blend[1].path is required\n"
            "optimizer.lr is 0 (--set optimizer.lr)\n"
            "name is required");
  EXPECT_EQ(ViolationsOf(placed)[0].description, "is -1, not in [1, 2^40] (job.yaml:3:5)");
  EXPECT_EQ(ViolationsOf(placed)[5].description, "is required");
}

TEST(KeyPlacesTest, OtherPayloadsAndTheRestOfTheMessageStay) {
  Status refused = Annotate(Refused(), "127.0.0.1:7");
  refused.SetPayload(kOtherUrl, absl::Cord("x"));
  const Status placed = WithPlaces(refused, Places());
  EXPECT_TRUE(
      Message(placed).starts_with("127.0.0.1:7: training.steps is -1, not in [1, 2^40] (job"))
      << placed;
  EXPECT_EQ(placed.GetPayload(kOtherUrl), absl::Cord("x"));
}

TEST(KeyPlacesTest, AStatusWithoutViolationsStaysAsItIs) {
  EXPECT_EQ(WithPlaces(NotFound("training.steps is lost"), Places()),
            NotFound("training.steps is lost"));
  EXPECT_TRUE(WithPlaces(OkStatus(), Places()).ok());
}

TEST(KeyPlacesTest, AMessageThatWasCutKeepsWhatItHas) {
  Violations violations;
  violations.Add("training.steps", "is -1");
  violations.Add("optimizer.lr", "is 0");
  Status cut = InvalidArgument("training.steps is -1\nopti…");
  SetViolations(violations.list(), &cut);
  EXPECT_EQ(Message(WithPlaces(cut, Places())), "training.steps is -1 (job.yaml:3:5)\nopti…");
}

TEST(KeyPlacesTest, APlaceCannotBeginALine) {
  Violations violations;
  violations.Add("name", "is bad");
  EXPECT_EQ(Message(WithPlaces(violations.ToStatus(), {{"name", "a\nb.yaml:1:1"}})),
            "name is bad (a\\nb.yaml:1:1)");
}

TEST(KeyPlacesTest, AResultIsReturnedOrGetsThePlaces) {
  EXPECT_EQ(*WithPlaces(StatusOr<int>(3), Places()), 3);
  const StatusOr<int> placed = WithPlaces(StatusOr<int>(Refused()), Places());
  EXPECT_EQ(ViolationsOf(placed.status())[4].description, "is 0 (--set optimizer.lr)");
}

}  // namespace
}  // namespace troupe
