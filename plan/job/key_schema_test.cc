#include "plan/job/key_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "model/program/router_attributes.h"
#include "plan/job/job_file.h"
#include "troupe/v1/job.pb.h"

namespace troupe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

void ForEachKey(const Descriptor& type, const std::function<void(const FieldDescriptor&)>& visit) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    is_message ? ForEachKey(*field.message_type(), visit) : visit(field);
  }
}

const FieldDescriptor& Key(const Descriptor* type, const char* name) {
  return *type->FindFieldByName(name);
}

TEST(KeySchemaTest, EveryKeyStatesWhatItMeansAndWhatItsAbsenceMeans) {
  int keys = 0;
  ForEachKey(*v1::JobSpec::descriptor(), [&](const FieldDescriptor& field) {
    SCOPED_TRACE(field.full_name());
    const v1::KeyOptions& options = KeyOptionsOf(field);
    EXPECT_TRUE(options.doc().ends_with('.')) << options.doc();
    EXPECT_EQ(options.has_default_() + !options.default_key().empty() + !options.absent().empty() +
                  options.required(),
              1);
    EXPECT_FALSE(options.has_min() && options.has_above());
    EXPECT_FALSE(options.has_max() && options.has_below());
    ++keys;
  });
  EXPECT_GT(keys, 90);
}

TEST(KeySchemaTest, EveryDefaultIsAllowed) {
  ForEachKey(*v1::JobSpec::descriptor(), [&](const FieldDescriptor& field) {
    SCOPED_TRACE(field.full_name());
    const v1::KeyOptions& options = KeyOptionsOf(field);
    if (!options.has_default_()) return;
    if (!options.words().empty()) {
      EXPECT_THAT(WordsOf(field), testing::Contains(options.default_()));
    } else if (!RangeText(options).empty()) {
      EXPECT_TRUE(IsInRange(options, std::stod(options.default_())));
    }
  });
}

TEST(KeySchemaTest, WordsAreTheNamesOfTheEnumWithoutItsPrefix) {
  EXPECT_THAT(WordsOf(Key(v1::LrScheduleSpec::descriptor(), "decay_type")),
              testing::ElementsAre("constant", "linear", "cosine", "wsd", "inverse_sqrt"));
  EXPECT_THAT(WordsOf(Key(v1::Float8Spec::descriptor(), "recipe")),
              testing::ElementsAre("none", "delayed", "current", "blockwise"));
  EXPECT_THAT(WordsOf(Key(v1::JobSpec::descriptor(), "devices")),
              testing::ElementsAre("cpu", "cuda", "xla"));
  EXPECT_THAT(WordsOf(Key(v1::JobSpec::descriptor(), "name")), testing::IsEmpty());
}

TEST(KeySchemaTest, AKeyIsFoundByItsPath) {
  EXPECT_EQ(&KeyField("training.float8.recipe"), &Key(v1::Float8Spec::descriptor(), "recipe"));
  EXPECT_EQ(&KeyField("devices"), &Key(v1::JobSpec::descriptor(), "devices"));
  EXPECT_EQ(DefaultNumber("optimizer.lr"), 3e-4);
  EXPECT_EQ(DefaultNumber("training.steps"), 1000);
}

TEST(KeySchemaTest, AnUnknownWordIsNone) {
  EXPECT_EQ(FindWord<v1::DecayType>("wsd"), v1::DECAY_TYPE_WSD);
  EXPECT_EQ(FindWord<v1::DecayType>("exponential"), std::nullopt);
  EXPECT_EQ(FindWord<v1::DecayType>("WSD"), std::nullopt);
  EXPECT_EQ(DecodeWord<v1::DecayType>("exponential"), v1::DECAY_TYPE_CONSTANT);
}

TEST(KeySchemaTest, AValueIsDecodedFromItsWord) {
  EXPECT_EQ(EncodeWord(v1::DECAY_TYPE_INVERSE_SQRT), "inverse_sqrt");
  for (const auto mode : {v1::RECOMPUTATION_MODE_NONE, v1::RECOMPUTATION_MODE_SELECTIVE,
                          v1::RECOMPUTATION_MODE_FULL}) {
    EXPECT_EQ(FindWord<v1::RecomputationMode>(EncodeWord(mode)), mode);
  }
}

TEST(KeySchemaTest, RangesIncludeMinAndMaxAndExcludeAboveAndBelow) {
  v1::KeyOptions closed, open;
  closed.set_min(1);
  closed.set_max(65536);
  open.set_above(0);
  open.set_below(0.5);
  EXPECT_EQ(RangeText(closed), "[1, 2^16]");
  EXPECT_EQ(RangeText(open), "(0, 0.5)");
  for (const double value : {1.0, 65536.0}) EXPECT_TRUE(IsInRange(closed, value)) << value;
  for (const double value : {0.0, 65537.0}) EXPECT_FALSE(IsInRange(closed, value)) << value;
  for (const double value : {0.0, 0.5}) EXPECT_FALSE(IsInRange(open, value)) << value;
  open.clear_below();
  EXPECT_EQ(RangeText(open), "(0, ∞)");
  for (const double value :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_FALSE(IsInRange(open, value)) << value;
    EXPECT_TRUE(IsInRange(v1::KeyOptions(), value)) << value;
  }
}

TEST(KeySchemaTest, LimitsThatKernelsHaveTooAreTheirs) {
  for (const char* const name : {"num_experts", "num_shared_experts"}) {
    EXPECT_EQ(KeyOptionsOf(Key(v1::ModelSpec::descriptor(), name)).max(), model::kMaxExperts);
  }
}

}  // namespace
}  // namespace troupe
