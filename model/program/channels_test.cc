#include "model/program/channels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/build.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

using ::testing::HasSubstr;

Program Stage(int pipe_rank, bool document_mask, double dropout, std::string blocks = "ADADAD") {
  MeshView mesh;
  mesh.degrees[Axis::kPipe] = 3;
  mesh.coordinates[Axis::kPipe] = pipe_rank;
  ModelConfig model = SmallModel(std::move(blocks));
  model.hidden_dropout = dropout;
  BuildOptions options = StageOptions(model, mesh, 2, 8);
  options.document_mask = document_mask;
  return BuildProgram(options).value();
}

std::string Read(const Program& program) { return ToText(ChannelsRead(program).value()); }

TEST(ChannelsRead, AreThoseOfTheChunksInTheFormOfTheirValues) {
  EXPECT_EQ(Read(Stage(0, false, 0)), "positions i32 a token, tokens i32 a token");
  EXPECT_EQ(Read(Stage(1, true, 0.1)),
            "positions i32 a token, documents i32 a token, slots i32[2] a sample");
  EXPECT_EQ(Read(Stage(2, false, 0)),
            "positions i32 a token, targets i32 a token, weights f32 a token");
}

TEST(ChannelsRead, OfSeveralChunksEachIsThereOnce) {
  BuildOptions options = StageOptions(SmallModel("AD"), {}, 2, 8);
  options.chunks = {{0, 0, 1, true, false}, {1, 1, 1, false, true}};
  EXPECT_EQ(Read(BuildProgram(options).value()),
            "positions i32 a token, tokens i32 a token, targets i32 a token, weights f32 a token");
}

TEST(CheckChannels, EveryBuiltProgramKeepsToTheSchema) {
  for (const int stage : {0, 1, 2}) {
    const Status status = CheckChannels(Stage(stage, true, 0.1), CurrentSampleSchema());
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(CheckChannels, NamesTheChannelThatDepartsFromTheSchema) {
  const auto refusal = [](const Program& program) {
    const Status status = CheckChannels(program, CurrentSampleSchema());
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    return std::string(Message(status));
  };
  Program program = Stage(1, true, 0);
  ChunkInterface& chunk = program.chunks[0];
  const auto read = chunk.channels;

  chunk.channels.push_back({"region", read[0].value});
  EXPECT_THAT(refusal(program),
              HasSubstr("chunk 1 reads region i32 a token, which sample schema 1 does not know"));
  chunk.channels = read;
  chunk.channels.push_back({"positions", read[0].value});
  EXPECT_THAT(refusal(program), HasSubstr("positions i32 a token twice"));
  chunk.channels = read;
  chunk.channels.push_back({"tokens", read[0].value});
  EXPECT_THAT(refusal(program),
              HasSubstr("tokens i32 a token, which sample schema 1 has only for the first stage"));
  chunk.channels.back().channel = "targets";
  EXPECT_THAT(refusal(program), HasSubstr("has only for the last stage"));
  chunk.channels.back().channel = "weights";
  EXPECT_THAT(
      refusal(program),
      HasSubstr("reads weights i32 a token, which is weights f32 a token in sample schema 1"));
  chunk.channels.back() = {"weights", chunk.input};
  EXPECT_THAT(refusal(program),
              HasSubstr("channel weights: value input of f32, boundary, holds none"));
}

TEST(ChannelsRead, TwoChunksThatDifferInAFormAreRefused) {
  BuildOptions options = StageOptions(SmallModel("AD"), {}, 2, 8);
  options.chunks = {{0, 0, 1, true, false}, {1, 1, 1, false, true}};
  Program program = BuildProgram(options).value();
  program.values[program.chunks[1].Input("positions")].dtype = DType::kFloat32;
  EXPECT_THAT(
      std::string(Message(ChannelsRead(program).status())),
      HasSubstr("chunk 1 reads positions f32 a token, a chunk before it positions i32 a token"));
}

TEST(BuildProgram, OnContextRanksAChannelIsOfOwnTokensOrOfWholeSamples) {
  MeshView mesh;
  mesh.degrees[Axis::kContext] = 2;
  ModelConfig model = SmallModel("AD");
  model.hidden_dropout = 0.1;
  BuildOptions options = StageOptions(model, mesh, 3, 8);
  options.document_mask = true;
  const Program program = BuildProgram(options).value();
  const ChunkInterface& chunk = program.chunks[0];
  for (const std::string_view own :
       {channels::kTokens, channels::kTargets, channels::kWeights, channels::kPositions}) {
    EXPECT_EQ(program.value(chunk.Input(own)).elements(), 3 * 4) << own;
    EXPECT_EQ(program.value(chunk.Input(own)).dims[0].global, 3 * 8) << own;
  }
  EXPECT_EQ(program.value(chunk.Input(channels::kDocuments)).elements(), 3 * 8);
  EXPECT_EQ(program.value(chunk.Input(channels::kDocuments)).placement[Axis::kContext],
            Replicated());
  EXPECT_EQ(program.value(chunk.Input(channels::kSlots)).elements(), 3 * 2);
  EXPECT_EQ(program.value(chunk.Input(channels::kSlots)).dims[0].global, 3);
}

}  // namespace
}  // namespace troupe::model
