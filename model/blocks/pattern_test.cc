#include "model/blocks/pattern.h"

#include <gtest/gtest.h>

namespace troupe::model {
namespace {

TEST(ExpandPatternTest, RepeatsGroupsAndLetters) {
  EXPECT_EQ(*ExpandPattern("(AD)x4"), "ADADADAD");
  EXPECT_EQ(*ExpandPattern("ADAD"), "ADAD");
  EXPECT_EQ(*ExpandPattern("Ax2D"), "AAD");
  EXPECT_EQ(*ExpandPattern("((AD)x2M)x2"), "ADADMADADM");
  EXPECT_EQ(ExpandPattern("(AD)x2048")->size(), 4096u);
}

TEST(ExpandPatternTest, RefusesWhatIsNoPatternWithThePosition) {
  for (const auto& [pattern, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", "position 1"},
           {"AZ", "'Z' at position 2"},
           {"(AD", "position 4"},
           {"AD)", "')' at position 3"},
           {"()", "')' at position 2"},
           {"(AD)x", "position 6"},
           {"(AD)x0", "position 6"},
           {"(AD)x-1", "position 6"},
           {"(AD)x2049", "more than 4096"},
           {"(AD)x99999999999999999999", "more than 4096"},
           {"((Ax4096)x4096)x4096", "more than 4096"},
           {"ad", "'a' at position 1"}}) {
    const auto blocks = ExpandPattern(pattern);
    ASSERT_FALSE(blocks.ok()) << pattern;
    EXPECT_EQ(blocks.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(Message(blocks.status()).find(words), std::string_view::npos)
        << pattern << ": " << Message(blocks.status());
  }
  EXPECT_FALSE(ExpandPattern(std::string(5000, '(')).ok());
}

TEST(LayerOfBlockTest, AttentionAndTheMlpAfterItShareALayer) {
  const auto layers = [](std::string_view blocks) {
    std::vector<int> result;
    for (size_t b = 0; b < blocks.size(); ++b) {
      result.push_back(LayerOfBlock(blocks, static_cast<int>(b)));
    }
    return result;
  };
  EXPECT_EQ(layers("ADAD"), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(layers("AAD"), (std::vector<int>{0, 1, 1}));
  EXPECT_EQ(layers("ADD"), (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(layers("DAD"), (std::vector<int>{0, 1, 1}));
  EXPECT_EQ(NumLayers("ADADD"), 3);
}

}  // namespace
}  // namespace troupe::model
