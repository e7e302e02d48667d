#include "worker/executor/chunk_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>

#include "model/build.h"
#include "model/testing.h"

namespace troupe {
namespace {

using model::Axis;
using model::ChunkInterface;
using model::Program;
using model::ValueId;
using ::testing::HasSubstr;

constexpr int64_t kTokens = 8;
constexpr int64_t kMicroBatch = 2;

// Records the bytes that are written into values.
class WrittenValues : public kernels::ValueMemory {
 public:
  template <typename T>
  std::vector<T> Values(ValueId value, int buffer) {
    const std::vector<std::byte>& bytes = written_.at({value, buffer});
    std::vector<T> numbers(bytes.size() / sizeof(T));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }
  size_t count() const { return written_.size(); }

  void* Address(ValueId, int) override { return nullptr; }
  Status Write(ValueId value, int buffer, std::span<const std::byte> bytes) override {
    written_[{value, buffer}].assign(bytes.begin(), bytes.end());
    return OkStatus();
  }
  Status Read(ValueId, int, std::span<std::byte>) override { return OkStatus(); }
  Status Copy(ValueId, int, ValueId, int) override { return OkStatus(); }
  bool is_host_memory() const override { return false; }
  Status ReadPart(ValueId, int64_t, std::span<std::byte>) override { return OkStatus(); }
  std::shared_ptr<void> Pin(std::span<std::byte>) override { return nullptr; }

 private:
  std::map<std::pair<ValueId, int>, std::vector<std::byte>> written_;
};

model::BuildOptions Options(int context, int rank) {
  model::MeshView mesh;
  mesh.degrees[Axis::kContext] = context;
  mesh.coordinates[Axis::kContext] = rank;
  model::ModelConfig config = model::SmallModel("AD");
  config.hidden_dropout = 0.1;
  return model::StageOptions(config, mesh, kMicroBatch, kTokens);
}

BatchGeometry Batch() {
  return {.global_batch_size = 4, .micro_batch_size = kMicroBatch, .sequence_length = kTokens};
}

ChannelForm Form(std::string_view name) { return CurrentSampleSchema().Find(name)->form; }

std::vector<ChannelForm> PlainData() {
  return {Form(channels::kTokens), Form(channels::kTargets), Form(channels::kWeights)};
}
std::vector<ChannelForm> MaskedData() {
  std::vector<ChannelForm> given = PlainData();
  given.push_back(Form(channels::kPositions));
  given.push_back(Form(channels::kDocuments));
  return given;
}

// Fills `numbers` with consecutive numbers that start with `from`.
void Count(std::span<int32_t> numbers, int32_t from) {
  std::iota(numbers.begin(), numbers.end(), from);
}

std::string Refusal(const SampleSchema& schema, const std::vector<ChannelForm>& given,
                    const Program& program) {
  const auto bound = BindChannels(schema, given, program, program.chunks[0]);
  EXPECT_EQ(bound.status().code(), StatusCode::kInvalidArgument);
  return std::string(Message(bound.status()));
}

TEST(ChunkInputs, FillEachChannelFromDataPlaceOrSlot) {
  const Program program = model::BuildProgram(Options(1, 0)).value();
  auto inputs = ChunkInputs::Make(CurrentSampleSchema(), PlainData(), program, Batch());
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_EQ(ToText(inputs->rows()), "tokens i32 a token, targets i32 a token, weights f32 a token");
  SampleBatch batch(inputs->rows(), 4, kTokens);
  for (int32_t s = 0; s < 4; ++s) Count(batch.Row(s).Int32s("tokens"), 100 * s);
  WrittenValues values;
  ASSERT_TRUE(inputs->Fill(0, 1, {&batch, 2, 7, 30}, values).ok());
  const ChunkInterface& chunk = program.chunks[0];
  EXPECT_EQ(values.count(), chunk.channels.size());
  EXPECT_EQ(values.Values<int32_t>(chunk.Input("tokens"), 1),
            (std::vector<int32_t>{200, 201, 202, 203, 204, 205, 206, 207,  //
                                  300, 301, 302, 303, 304, 305, 306, 307}));
  EXPECT_EQ(values.Values<int32_t>(chunk.Input("positions"), 1),
            (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(values.Values<int32_t>(chunk.Input("slots"), 1), (std::vector<int32_t>{7, 30, 7, 31}));
}

TEST(ChunkInputs, OnAContextRankAreItsOwnTokensOrWholeSamplesAsTheSchemaStates) {
  model::BuildOptions options = Options(2, 1);
  options.document_mask = true;
  const Program program = model::BuildProgram(options).value();
  auto inputs = ChunkInputs::Make(CurrentSampleSchema(), MaskedData(), program, Batch());
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  SampleBatch batch(inputs->rows(), 2, kTokens);
  for (int32_t s = 0; s < 2; ++s) {
    Count(batch.Row(s).Int32s("positions"), 100 * s);
    Count(batch.Row(s).Int32s("documents"), 100 * s);
  }
  WrittenValues values;
  ASSERT_TRUE(inputs->Fill(0, 0, {&batch, 0, 1, 0}, values).ok());
  const ChunkInterface& chunk = program.chunks[0];
  EXPECT_EQ(values.Values<int32_t>(chunk.Input("positions"), 0),
            (std::vector<int32_t>{2, 3, 4, 5, 102, 103, 104, 105}));
  EXPECT_EQ(values.Values<int32_t>(chunk.Input("documents"), 0).size(), 16u);
}

TEST(ChunkInputs, AStageThatReadsPlacesAndSlotsAloneNeedsNoRows) {
  model::MeshView mesh;
  mesh.degrees[Axis::kPipe] = 3;
  mesh.coordinates[Axis::kPipe] = 1;
  const Program program = model::BuildProgram(model::StageOptions(model::SmallModel("ADADAD"), mesh,
                                                                  kMicroBatch, kTokens))
                              .value();
  auto inputs = ChunkInputs::Make(CurrentSampleSchema(), PlainData(), program, Batch());
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_TRUE(inputs->rows().empty());
  WrittenValues values;
  EXPECT_TRUE(inputs->Fill(0, 0, {}, values).ok());
  EXPECT_EQ(values.count(), 1u);
}

TEST(BindChannels, WhatTheDataDoNotGiveIsRefusedByNameFormAndVersion) {
  model::BuildOptions options = Options(1, 0);
  options.document_mask = true;
  const Program program = model::BuildProgram(options).value();
  EXPECT_EQ(
      Refusal(CurrentSampleSchema(), PlainData(), program),
      "chunk 0 reads channel documents i32 a token (sample schema 1, since 1), which the data does "
      "not provide; it provides tokens i32 a token, targets i32 a token, weights f32 a token");
}

TEST(BindChannels, WhatTheDataGiveInAnotherFormIsRefused) {
  const Program program = model::BuildProgram(Options(1, 0)).value();
  std::vector<ChannelForm> given = PlainData();
  given[2].type = ChannelType::kInt32;
  EXPECT_EQ(Refusal(CurrentSampleSchema(), given, program),
            "chunk 0 reads channel weights f32 a token (sample schema 1, since 1), but the data "
            "provides weights "
            "i32 a token");
}

// The next version of the schema. The test shows the changes that a further channel needs.
class RegionChannel : public ::testing::Test {
 protected:
  RegionChannel() {
    std::vector<Channel> channels = CurrentSampleSchema().channels();
    channels.push_back({.form = region_, .reader = ChannelReader::kFirstStage, .since = 2});
    next_ = SampleSchema::Make(std::move(channels)).value();
    given_ = PlainData();
  }

  // A program of `options` in which the first chunk reads the channel "region", as a block would.
  Program Reading(const model::BuildOptions& options) {
    Program program = model::BuildProgram(options).value();
    model::Value value = program.value(program.chunks[0].Input("tokens"));
    value.id = static_cast<ValueId>(program.values.size());
    value.name = "region";
    value.dtype = model::DType::kFloat32;
    value.dims.push_back({"lanes", 3, 3});
    program.values.push_back(value);
    program.chunks[0].channels.push_back({"region", value.id});
    return program;
  }

  const ChannelForm region_ = {"region", ChannelType::kFloat32, ChannelExtent::kToken, 3};
  SampleSchema next_ = CurrentSampleSchema();
  std::vector<ChannelForm> given_;
};

TEST_F(RegionChannel, IsFilledOnceTheSchemaKnowsItAndTheDataGiveIt) {
  given_.push_back(region_);
  for (const int context : {1, 2}) {
    const Program program = Reading(Options(context, context - 1));
    auto inputs = ChunkInputs::Make(next_, given_, program, Batch());
    ASSERT_TRUE(inputs.ok()) << inputs.status();
    ASSERT_NE(FindForm(inputs->rows(), "region"), nullptr);
    SampleBatch batch(inputs->rows(), kMicroBatch, kTokens);
    for (int64_t s = 0; s < kMicroBatch; ++s) {
      const auto region = batch.Row(s).Float32s("region");
      for (size_t i = 0; i < region.size(); ++i) {
        region[i] =
            static_cast<float>(10 * (static_cast<int64_t>(i) / 3) + static_cast<int64_t>(i) % 3) +
            100.0f * static_cast<float>(s);
      }
    }
    WrittenValues values;
    ASSERT_TRUE(inputs->Fill(0, 0, {&batch, 0, 1, 0}, values).ok());
    const auto region = values.Values<float>(program.chunks[0].Input("region"), 0);
    ASSERT_EQ(region.size(), static_cast<size_t>(kMicroBatch * kTokens / context * 3));
    // Rank 1 of 2 has the two middle chunks of each sample: tokens 2 to 5.
    const float first = context == 1 ? 0 : 20;
    EXPECT_EQ(region[0], first);
    EXPECT_EQ(region[5], first + 12);
    EXPECT_EQ(region[region.size() / 2], 100 + first);
  }
}

TEST_F(RegionChannel, IsRefusedWhereTheDataDoNotGiveItOrTheSchemaIsAnOlderOne) {
  const Program program = Reading(Options(1, 0));
  EXPECT_THAT(
      Refusal(next_, given_, program),
      HasSubstr("chunk 0 reads channel region f32[3] a token (sample schema 2, since 2), which the "
                "data does not provide"));
  given_.push_back(region_);
  EXPECT_EQ(Refusal(CurrentSampleSchema(), given_, program),
            "chunk 0 reads channel region f32[3] a token, which sample schema 1 does not know");
}

TEST_F(RegionChannel, ProgramsThatDoNotReadItRunUnderTheNextSchemaAsUnderThisOne) {
  const Program program = model::BuildProgram(Options(1, 0)).value();
  given_.push_back(region_);
  const auto inputs = ChunkInputs::Make(next_, given_, program, Batch());
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_EQ(inputs->rows(), PlainData());
}

}  // namespace
}  // namespace troupe
