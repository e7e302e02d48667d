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

TEST(KeyPlacesTest, AViolationNamesThePlaceOfItsKeyOrOfTheListAroundIt) {
  const Status placed = WithPlaces(Refused(), Places());
  EXPECT_EQ(placed.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(placed),
            "training.steps is -1, not in [1, 2^40] (job.yaml:3:5)\n"
            "data.blend[0].path is required (job.yaml:8:7)\n"
            "data.blend[1] is bad (job.yaml:7:3)\n"
            "data.blend[1].path is required (job.yaml:7:3)\n"
            "optimizer.lr is 0 (--set optimizer.lr)\n"
            "name is required");
  EXPECT_EQ(ViolationsOf(placed)[0].description, "is -1, not in [1, 2^40] (job.yaml:3:5)");
  EXPECT_EQ(ViolationsOf(placed)[5].description, "is required");
}

// Returns the description of a violation of `field` by `description`, with its place.
std::string Placed(const KeyPlaces& places, const char* field, const char* description) {
  const Status refused = RefuseField(StatusCode::kInvalidArgument, field, "{}", description);
  return ViolationsOf(WithPlaces(refused, places))[0].description;
}

TEST(KeyPlacesTest, AKeyThatIsNotStatedHasThePlaceOfTheNearestThatIs) {
  const KeyPlaces places = {{"", "job.yaml"},
                            {"checkpoint", "job.yaml:2:1"},
                            {"data", "job.yaml:4:1"},
                            {"data.blend", "job.yaml:5:3"},
                            {"name", "job.yaml:1:1"}};
  EXPECT_EQ(Placed(places, "checkpoint.folder", "is required"), "is required (job.yaml:2:1)");
  EXPECT_EQ(Placed(places, "data.blend[3].path", "is bad"), "is bad (job.yaml:5:3)");
  EXPECT_EQ(Placed(places, "data.train", "is no name"), "is no name (job.yaml:4:1)");
  EXPECT_EQ(Placed(places, "training.steps", "is 0"), "is 0 (job.yaml)");
  EXPECT_EQ(Placed(places, "training", "is bad"), "is bad (job.yaml)");
  EXPECT_EQ(Placed(places, "request_id", "is too long"), "is too long") << "it is no key of a job";
}

TEST(KeyPlacesTest, ARelationHasThePlaceOfTheStatedKeyThatItNames) {
  const KeyPlaces places = {{"", "job.yaml"},
                            {"model", "job.yaml:2:1"},
                            {"model.hidden_size", "job.yaml:2:9"},
                            {"parallelism", "job.yaml:3:1"},
                            {"parallelism.data_parallel_replicate_degree", "job.yaml:3:15"},
                            {"parallelism.tensor_parallel_degree", "--set tp"},
                            {"training", "job.yaml:4:1"},
                            {"training.steps", "job.yaml:4:12"}};
  EXPECT_EQ(
      Placed(places, "training.global_batch_size",
             "is 16, not a multiple of data_parallel_replicate_degree = 3 times "
             "micro_batch_size = 1"),
      "is 16, not a multiple of data_parallel_replicate_degree = 3 times micro_batch_size = 1 "
      "(job.yaml:3:15)");
  EXPECT_EQ(Placed(places, "model.num_attention_heads",
                   "is 7, which does not divide model.hidden_size = 8"),
            "is 7, which does not divide model.hidden_size = 8 (job.yaml:2:9)");
  EXPECT_EQ(Placed(places, "model.head_dim", "is 3; tensor_parallel_degree, then hidden_size"),
            "is 3; tensor_parallel_degree, then hidden_size (--set tp)")
      << "the first that is named";
  // A common word, a part of a longer name, and a key that is stated itself.
  EXPECT_EQ(Placed(places, "checkpoint.interval", "is 3 steps, below the model's"),
            "is 3 steps, below the model's (job.yaml)");
  EXPECT_EQ(Placed(places, "model.vocab_size", "is 3, not moe_hidden_size"),
            "is 3, not moe_hidden_size (job.yaml:2:1)");
  EXPECT_EQ(Placed(places, "training.steps", "is 3, not model.hidden_size"),
            "is 3, not model.hidden_size (job.yaml:4:12)");
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
