#include "plan/job/violation.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(Violations, EachKindHasOneText) {
  Violations violations;
  violations.AddUnknownWord("a", "x", "y, z");
  violations.AddOutOfRange("b", 2.5, "(0, 1]");
  violations.AddTooLarge("c", 9, "d = 8");
  violations.AddTooSmall("c", 7, "d = 8");
  violations.AddNotAbove("c", 8, "d = 8");
  violations.AddProductTooLarge("e", 5, "f = 6", "29");
  violations.AddNotMultiple("g", 3, "2: a reason");
  violations.AddNotDivisor("g", 3, "h = 4");
  violations.AddIndivisible("g", "ring", "h = 4", "3");
  violations.AddUnlessDivides("g", 2, "h", 4);
  violations.AddUnlessDivides("g", 3, "h", 5);
  EXPECT_EQ(Message(violations.ToStatus()),
            "a is \"x\", not one of y, z\n"
            "b is 2.5, not in (0, 1]\n"
            "c is 9, above d = 8\n"
            "c is 7, below d = 8\n"
            "c is 8, not above d = 8\n"
            "e is 5, and its product with f = 6 is above 29\n"
            "g is 3, not a multiple of 2: a reason\n"
            "g is 3, which does not divide h = 4\n"
            "g is ring, but h = 4 is not a multiple of 3\n"
            "g is 3, which does not divide h = 5");
}

TEST(Violations, ControlCharactersAreVisible) {
  Violations violations;
  violations.Add(std::string("a\x1b"), "is {}", std::string("ä\0\x7f\t\n", 6));
  EXPECT_EQ(Message(violations.ToStatus()), "a\\u001b is ä\\u0000\\u007f\t\\n");
}

TEST(Violations, AValueMakesNoOtherViolation) {
  Violations violations;
  violations.AddUnknownWord("optimizer.name", "x\ntraining.steps is 5, above 3", "adamw");
  violations.Add("a\nb", "is required");
  const Status status = violations.ToStatus();
  EXPECT_EQ(Message(status),
            "optimizer.name is \"x\\ntraining.steps is 5, above 3\", not one of adamw\n"
            "a\\nb is required");
  EXPECT_EQ(ViolationsOf(status)[0].description,
            "is \"x\\ntraining.steps is 5, above 3\", not one of adamw");
}

TEST(RefuseData, StatesAFieldAndItsValueOnce) {
  v1::JobSpec spec;
  spec.mutable_model()->set_vocab_size(100);
  spec.mutable_data()->set_train("/d/x");
  EXPECT_EQ(Message(RefuseData(spec, "model.vocab_size",
                               InvalidArgument("model.vocab_size 100 is below the 500 of d"))),
            "model.vocab_size is 100, which is below the 500 of d");
  EXPECT_EQ(Message(RefuseData(spec, "data.train", InvalidArgument("no tokens"))),
            "data.train is /d/x: no tokens");
}

TEST(RefuseData, ADatasetThatDoesNotExistGetsAHint) {
  v1::JobSpec spec;
  spec.mutable_data()->set_train("/d/x.idx");
  EXPECT_EQ(Message(RefuseData(spec, "data.train", NotFound("no such file"))),
            "data.train is /d/x.idx: no such file; state the prefix without the ending, /d/x");
}

TEST(SetViolations, ReplacesThemAndNotTheMessage) {
  Violations violations;
  violations.Add("a", "is 1");
  Status status = violations.ToStatus();
  SetViolations({{"b", "is 2"}}, &status);
  EXPECT_EQ(Message(status), "a is 1");
  ASSERT_EQ(ViolationsOf(status).size(), 1u);
  EXPECT_EQ(ViolationsOf(status)[0].field, "b");
}

}  // namespace
}  // namespace troupe
