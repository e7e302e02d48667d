#include "data/sample_batch.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe {
namespace {

const std::vector<ChannelForm> kChannels = {
    {"tokens", ChannelType::kInt32, ChannelExtent::kToken, 1},
    {"region", ChannelType::kFloat32, ChannelExtent::kToken, 2},
    {"source", ChannelType::kInt32, ChannelExtent::kSample, 1},
};

TEST(SampleBatch, KeepsEachChannelsSamplesOneAfterTheOther) {
  SampleBatch batch(kChannels, 2, 3);
  for (int64_t sample = 0; sample < 2; ++sample) {
    const SampleRow row = batch.Row(sample);
    ASSERT_EQ(row.Int32s("tokens").size(), 3u);
    ASSERT_EQ(row.Float32s("region").size(), 6u);
    ASSERT_EQ(row.Int32s("source").size(), 1u);
    std::fill(row.Int32s("tokens").begin(), row.Int32s("tokens").end(),
              static_cast<int32_t>(10 + sample));
    row.Float32s("region")[5] = 0.5f + static_cast<float>(sample);
    row.Int32s("source")[0] = static_cast<int32_t>(7 + sample);
  }
  const auto tokens = batch.Int32s("tokens");
  EXPECT_EQ(std::vector<int32_t>(tokens.begin(), tokens.end()),
            (std::vector<int32_t>{10, 10, 10, 11, 11, 11}));
  EXPECT_EQ(batch.Float32s("region").size(), 12u);
  EXPECT_EQ(batch.Float32s("region")[11], 1.5f);
  EXPECT_EQ(batch.Int32s("source")[1], 8);
  EXPECT_EQ(batch.Bytes("region").size(), 48u);
}

TEST(SampleBatch, OfAChannelThatItIsWithoutThereIsNothing) {
  SampleBatch batch(kChannels, 1, 3);
  EXPECT_TRUE(batch.Int32s("documents").empty());
  EXPECT_TRUE(batch.Bytes("documents").empty());
  EXPECT_TRUE(batch.Row(0).Int32s("documents").empty());
  EXPECT_TRUE(SampleBatch().Float32s("weights").empty());
}

TEST(SampleBatchDeathTest, AChannelIsNotReadAsAnotherType) {
  SampleBatch batch(kChannels, 1, 3);
  EXPECT_DEATH((void)batch.Float32s("tokens"), "channel tokens has another type");
  EXPECT_DEATH((void)batch.Row(0).Int32s("region"), "channel region has another type");
}

}  // namespace
}  // namespace troupe
