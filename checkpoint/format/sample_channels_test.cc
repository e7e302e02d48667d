#include "checkpoint/format/sample_channels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

#include "checkpoint/format/manifest.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

const ChannelForm kRegion = {"region", ChannelType::kFloat32, ChannelExtent::kToken, 64};

SampleSchema NextSchema() {
  std::vector<Channel> channels = CurrentSampleSchema().channels();
  channels.push_back({.form = kRegion, .since = 2});
  return SampleSchema::Make(std::move(channels)).value();
}

void Record(const ChannelForm& form, v1::SampleChannels* samples) {
  auto* const channel = samples->add_channels();
  channel->set_name(form.name);
  channel->set_type(Name(form.type));
  channel->set_extent(Name(form.extent));
  channel->set_lanes(form.lanes);
}

// Returns the record of a job that reads every channel of `schema`.
v1::SampleChannels Recorded(const SampleSchema& schema) {
  v1::SampleChannels samples;
  samples.set_version(schema.version());
  for (const Channel& channel : schema.channels()) Record(channel.form, &samples);
  return samples;
}

TEST(CheckSampleChannels, ALaterSchemaGoesOnFromAnOlderRecord) {
  EXPECT_TRUE(CheckSampleChannels(Recorded(CurrentSampleSchema()), NextSchema()).ok());
  EXPECT_TRUE(CheckSampleChannels(Recorded(CurrentSampleSchema()), CurrentSampleSchema()).ok());
}

TEST(CheckSampleChannels, NothingRecordedIsVersion1AndGoesWithEverySchema) {
  EXPECT_EQ(SampleSchemaVersion({}), 1);
  EXPECT_TRUE(CheckSampleChannels({}, CurrentSampleSchema()).ok());
  EXPECT_TRUE(CheckSampleChannels({}, NextSchema()).ok());
}

TEST(CheckSampleChannels, AnOlderSchemaRefusesTheChannelItDoesNotKnowByName) {
  const Status status = CheckSampleChannels(Recorded(NextSchema()), CurrentSampleSchema());
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(status),
            "it needs channel region f32[64] a token of sample schema 2, which this build, with "
            "sample schema 1, does not know");
}

TEST(CheckSampleChannels, ALaterRecordThatNeedsNoNewChannelIsAsGood) {
  v1::SampleChannels samples = Recorded(CurrentSampleSchema());
  samples.set_version(9);
  EXPECT_TRUE(CheckSampleChannels(samples, CurrentSampleSchema()).ok());
}

TEST(CheckSampleChannels, AKnownChannelInAnotherFormIsRefused) {
  for (const auto& change : std::vector<void (*)(v1::SampleChannel&)>{
           [](auto& c) { c.set_type("f32"); }, [](auto& c) { c.set_extent("sample"); },
           [](auto& c) { c.set_lanes(2); }}) {
    v1::SampleChannels samples = Recorded(CurrentSampleSchema());
    change(*samples.mutable_channels(0));
    ASSERT_TRUE(ValidateSampleChannels(samples).ok());
    const Status status = CheckSampleChannels(samples, CurrentSampleSchema());
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(Message(status)), HasSubstr("it needs channel tokens "));
    EXPECT_THAT(std::string(Message(status)),
                HasSubstr("in this build, with sample schema 1, it is tokens i32 a token"));
  }
}

TEST(ValidateSampleChannels, RefusesWhatNoBuildRecords) {
  struct Case {
    std::function<void(v1::SampleChannels&)> change;
    std::string message;
  };
  const auto first = [](void (*change)(v1::SampleChannel&)) {
    return [change](v1::SampleChannels& samples) { change(*samples.mutable_channels(0)); };
  };
  const std::vector<Case> cases = {
      {[](auto& s) { s.set_version(-1); }, "samples.version -1 is below 0"},
      {first([](auto& c) { c.set_name(""); }), "\"\" is not a channel name"},
      {first([](auto& c) { c.set_name(std::string(1 << 20, 'a')); }), "is not a channel name"},
      {first([](auto& c) { c.set_name("a\nb"); }), "is not a channel name"},
      {first([](auto& c) { c.set_name("targets"); }), "\"targets\" appears twice"},
      {first([](auto& c) { c.set_type(""); }), "which is not a type and an extent"},
      {first([](auto& c) { c.set_type(std::string(1 << 20, 'x')); }),
       "which is not a type and an extent"},
      {first([](auto& c) { c.set_extent("a b"); }), "which is not a type and an extent"},
      {first([](auto& c) { c.set_lanes(0); }), "\"tokens\" has 0 lanes"},
      {first([](auto& c) { c.set_lanes(INT64_MAX); }), "lanes, must have 1 to"},
      {[](auto& s) {
         for (int i = 0; i < 60; ++i) Record({"c" + std::to_string(i)}, &s);
       },
       "66 channels exceed the limit of 64"},
  };
  for (const Case& c : cases) {
    v1::SampleChannels samples = Recorded(CurrentSampleSchema());
    ASSERT_TRUE(ValidateSampleChannels(samples).ok());
    c.change(samples);
    const Status status = ValidateSampleChannels(samples);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(c.message));
    EXPECT_LT(Message(status).size(), 200u);
  }
}

// Covers a manifest written before samples were recorded, and one of a later build.
TEST(ManifestSamples, AreReadWhereThereAreNoneAndWhereTheyAreOfALaterBuild) {
  const auto with = [](const std::string& samples) {
    return ManifestFromJson(
        "{\"format_version\": 2, " + samples +
        "\"shards\": [{\"name\": \"a\", \"bytes\": \"8\", \"digest\": \"xxh128:" +
        std::string(32, 'a') + "\", \"block_crc32c\": [1]}]}");
  };
  const auto old = with("");
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_FALSE(old->has_samples());
  EXPECT_TRUE(CheckSampleChannels(old->samples(), NextSchema()).ok());

  const auto later = with(
      "\"samples\": {\"version\": 2, \"channels\": [{\"name\": \"region\", \"type\": \"bf16\", "
      "\"extent\": "
      "\"patch\", \"lanes\": \"64\"}]}, ");
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_THAT(std::string(Message(CheckSampleChannels(later->samples(), CurrentSampleSchema()))),
              HasSubstr("channel region bf16[64] a patch of sample schema 2"));

  EXPECT_THAT(std::string(Message(with("\"samples\": {\"version\": -5}, ").status())),
              HasSubstr("manifest: samples.version -5 is below 0"));
}

}  // namespace
}  // namespace troupe
