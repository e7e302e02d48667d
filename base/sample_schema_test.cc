#include "base/sample_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;

// Checkpoints rely on this text: a line with a later version may be added, but no line may change.
TEST(SampleSchema, IsTheListThatCheckpointsRelyOn) {
  EXPECT_EQ(ToText(CurrentSampleSchema()),
            "sample schema 1\n"
            "tokens i32 a token: from data, for first stage, own tokens, required; since 1\n"
            "targets i32 a token: from data, for last stage, own tokens, required; since 1\n"
            "weights f32 a token: from data, for any stage, own tokens, required; since 1\n"
            "positions i32 a token: from data or place, for any stage, own tokens; since 1\n"
            "documents i32 a token: from data, for any stage, whole samples; since 1\n"
            "slots i32[2] a sample: from slot, for any stage; since 1\n");
}

TEST(SampleSchema, ItsVersionIsThatOfItsLatestChannel) {
  std::vector<Channel> channels = CurrentSampleSchema().channels();
  channels.push_back(
      {.form = {"region", ChannelType::kFloat32, ChannelExtent::kToken, 4}, .since = 2});
  const auto next = SampleSchema::Make(channels);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->version(), 2);
  ASSERT_NE(next->Find("region"), nullptr);
  EXPECT_EQ(ToText(next->Find("region")->form), "region f32[4] a token");
  EXPECT_EQ(CurrentSampleSchema().Find("region"), nullptr);
}

TEST(SampleSchema, RefusesAChannelThatIsNoneByItsName) {
  const auto refusal = [](const Channel& channel) {
    std::vector<Channel> channels = CurrentSampleSchema().channels();
    channels.push_back(channel);
    const auto made = SampleSchema::Make(channels);
    EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
    return std::string(Message(made.status()));
  };
  const auto form = [](std::string name) { return ChannelForm{std::move(name)}; };
  EXPECT_THAT(refusal({.form = form("")}), HasSubstr("\"\" is not a channel name"));
  EXPECT_THAT(refusal({.form = form("Re gion")}), HasSubstr("\"Re gion\" is not a channel name"));
  EXPECT_THAT(refusal({.form = form(std::string(65, 'a'))}), HasSubstr("is not a channel name"));
  EXPECT_THAT(refusal({.form = form("tokens")}), HasSubstr("\"tokens\" appears twice"));
  EXPECT_THAT(refusal({.form = form("x"), .since = 0}), HasSubstr("\"x\": since is version 0"));
  EXPECT_THAT(refusal({.form = {"x", ChannelType::kInt32, ChannelExtent::kToken, 0}}),
              HasSubstr("\"x\" has 0 lanes"));
  EXPECT_THAT(
      refusal({.form = {"x", ChannelType::kFloat32}, .source = ChannelSource::kDataOrPlace}),
      HasSubstr("which is i32 a token, not f32 a token"));
  EXPECT_THAT(refusal({.form = form("x"), .source = ChannelSource::kSlot}),
              HasSubstr("which is i32[2] a sample, not i32 a token"));
  EXPECT_FALSE(SampleSchema::Make(std::vector<Channel>(65, {.form = form("x")})).ok());
}

}  // namespace
}  // namespace troupe
