#include "model/blocks/block_kind.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/build.h"
#include "model/cost.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

std::vector<const BlockKind*> BuiltKinds() {
  std::vector<const BlockKind*> kinds;
  for (const BlockKind* kind : BlockKinds()) {
    if (kind->build != nullptr) kinds.push_back(kind);
  }
  return kinds;
}

// 2 samples of 8 tokens through one block, without embedding and head.
StatusOr<Program> OneBlock(char letter) {
  BuildOptions options = StageOptions(SmallMixture(std::string(1, letter)), {}, 2, 8);
  options.chunks[0].has_embedding = options.chunks[0].has_head = false;
  return BuildProgram(options);
}

TEST(BlockKindTest, LettersAreDistinctCapitals) {
  std::set<char> letters;
  for (const BlockKind* kind : BlockKinds()) {
    EXPECT_TRUE(kind->letter >= 'A' && kind->letter <= 'Z') << kind->letter;
    EXPECT_TRUE(letters.insert(kind->letter).second) << kind->letter;
    EXPECT_EQ(FindBlockKind(kind->letter), kind);
  }
  EXPECT_EQ(FindBlockKind('x'), nullptr);
}

TEST(BlockKindTest, MessagesListTheLettersOfBuiltKinds) {
  std::string letters = BuiltLetters();
  std::erase_if(letters, [](char c) { return c < 'A' || c > 'Z'; });
  std::string built;
  for (const BlockKind* kind : BuiltKinds()) built += kind->letter;
  EXPECT_EQ(letters, built);
}

TEST(BlockKindTest, ParametersAndFlopsAreThoseOfTheProgram) {
  for (const BlockKind* kind : BuiltKinds()) {
    SCOPED_TRACE(kind->letter);
    const auto program = OneBlock(kind->letter);
    ASSERT_TRUE(program.ok()) << program.status();
    const ModelConfig model = SmallMixture(std::string(1, kind->letter));
    int64_t elements = 0;
    for (const ParameterEntry& entry : program->parameters) {
      elements += program->value(entry.value).elements();
    }
    EXPECT_EQ(kind->parameters(model), elements);
    EXPECT_DOUBLE_EQ(kind->flops(model, 2, 8).total(), ModelFlops(*program, 0).forward);
  }
}

TEST(BlockKindTest, ABlockReadsItsChannels) {
  for (const BlockKind* kind : BuiltKinds()) {
    const auto program = OneBlock(kind->letter);
    ASSERT_TRUE(program.ok()) << program.status();
    for (const std::string_view channel : kind->channels) {
      EXPECT_NE(program->chunks[0].Input(channel), kNoValue) << kind->letter << ": " << channel;
    }
  }
}

}  // namespace
}  // namespace troupe::model
