#include "plan/validate/read_channels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/build.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

model::Program Stage(int pipe_rank) {
  model::BuildOptions options;
  options.model.blocks = "AD";
  options.model.hidden_size = 8;
  options.model.num_attention_heads = options.model.num_key_value_heads = 1;
  options.model.head_dim = 8;
  options.model.intermediate_size = 8;
  options.model.vocab_size = 11;
  options.mesh.degrees[model::Axis::kPipe] = 2;
  options.mesh.coordinates[model::Axis::kPipe] = pipe_rank;
  options.chunks = {{pipe_rank, pipe_rank, 1, pipe_rank == 0, pipe_rank == 1}};
  options.sequence_length = 4;
  options.document_mask = true;
  return model::BuildProgram(options).value();
}

TEST(ReadChannels, AreThoseOfAllStagesInTheOrderOfTheSchema) {
  ReadChannels read(CurrentSampleSchema());
  ASSERT_TRUE(read.Add(Stage(1)).ok());
  ASSERT_TRUE(read.Add(Stage(0)).ok());
  const auto samples = read.ToProto();
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ(ToText(*samples),
            "schema 1: tokens i32 a token, targets i32 a token, weights f32 a token, positions i32 "
            "a token, "
            "documents i32 a token");
}

TEST(ReadChannels, AProgramThatLacksWhatTheSchemaRequiresIsRefusedByName) {
  ReadChannels read(CurrentSampleSchema());
  ASSERT_TRUE(read.Add(Stage(0)).ok());
  EXPECT_THAT(
      std::string(Message(read.ToProto().status())),
      HasSubstr("no stage reads channel targets i32 a token, which sample schema 1 requires"));
}

TEST(ReadChannels, AreRecordedUnderALaterSchemaWithItsVersionAlone) {
  std::vector<Channel> channels = CurrentSampleSchema().channels();
  channels.push_back(
      {.form = {"region", ChannelType::kFloat32, ChannelExtent::kToken, 3}, .since = 2});
  ReadChannels read(SampleSchema::Make(channels).value());
  ASSERT_TRUE(read.Add(Stage(0)).ok());
  ASSERT_TRUE(read.Add(Stage(1)).ok());
  const auto samples = read.ToProto();
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ(samples->version(), 2);
  EXPECT_EQ(samples->channels_size(), 5);
}

TEST(ReadChannels, AProgramThatDepartsFromTheSchemaIsRefused) {
  model::Program program = Stage(0);
  program.chunks[0].channels.push_back({"region", program.chunks[0].Input("tokens")});
  ReadChannels read(CurrentSampleSchema());
  EXPECT_THAT(std::string(Message(read.Add(program))), HasSubstr("region i32 a token"));
}

}  // namespace
}  // namespace troupe
