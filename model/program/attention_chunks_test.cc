#include "model/program/attention_chunks.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe::model {
namespace {

AttentionAttributes Attention(int64_t tokens, Mask::Kind mask = Mask::Kind::kCausal) {
  return {.query_heads = 2, .key_value_heads = 1, .head_dim = 4, .tokens = tokens, .mask = {mask}};
}

AttentionChunks OfWholeSamples(int64_t tokens, Mask::Kind mask = Mask::Kind::kCausal) {
  const ContextRows all = ContextRows::Of(tokens, 1, 0);
  return ChunksOf(Attention(tokens, mask), all, all);
}

// "0-128:128 128-256:256": queries and keys of each chunk.
std::string ToText(const AttentionChunks& of) {
  std::string text;
  for (const QueryChunk& chunk : of.chunks) {
    text += fmt::format("{}{}-{}:{}", text.empty() ? "" : " ", chunk.begin, chunk.end, chunk.keys);
  }
  return text;
}

TEST(AttentionChunks, SeeTheKeysUpToTheirLastQuery) {
  EXPECT_EQ(ToText(OfWholeSamples(300)), "0-128:128 128-256:256 256-300:300");
  // A rank's head and tail of 128 rows attend to those of the rank before it, and to no later ones.
  const ContextRows first = ContextRows::Of(512, 2, 0), second = ContextRows::Of(512, 2, 1);
  EXPECT_EQ(ToText(ChunksOf(Attention(512), first, second)), "0-128:0 128-256:256");
  EXPECT_EQ(ToText(ChunksOf(Attention(512), second, first)), "0-128:128 128-256:128");
}

TEST(AttentionChunks, AreOneLoopWhereTheyAreManyAndEqual) {
  const auto loops = [](int64_t tokens) { return OfWholeSamples(tokens).loops; };
  EXPECT_FALSE(loops(896));  // seven chunks
  EXPECT_TRUE(loops(1024));
  EXPECT_FALSE(loops(1025));  // the last one has a single query
  EXPECT_EQ(OfWholeSamples(2048).size, 128);
  EXPECT_EQ(OfWholeSamples(8192).size, 512);
  EXPECT_EQ(OfWholeSamples(8192).chunks.size(), 16);
  EXPECT_TRUE(loops(8192));
}

TEST(AttentionChunks, ReadKeysByBlocksInLoopsAndWhereDocumentsHideSome) {
  EXPECT_FALSE(OfWholeSamples(512).by_blocks);
  EXPECT_TRUE(OfWholeSamples(1024).by_blocks);
  EXPECT_FALSE(OfWholeSamples(128, Mask::Kind::kDocument).by_blocks);
  EXPECT_TRUE(OfWholeSamples(512, Mask::Kind::kDocument).by_blocks);
}

}  // namespace
}  // namespace troupe::model
