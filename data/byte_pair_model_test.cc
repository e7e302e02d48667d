#include "data/byte_pair_model.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "data/added_tokens.h"
#include "data/piece_cache.h"

namespace troupe {
namespace {

std::array<int32_t, 256> BytesAsIds() {
  std::array<int32_t, 256> ids;
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// Implements the definition literally.
std::vector<int32_t> Expected(const std::vector<BytePairModel::Merge>& merges,
                              std::string_view piece) {
  std::vector<int32_t> ids;
  for (const char c : piece) ids.push_back(static_cast<unsigned char>(c));
  while (true) {
    size_t rank = merges.size(), at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      for (size_t r = merges.size(); r-- > 0;) {  // the later of two equal pairs counts
        if (merges[r].left != ids[i] || merges[r].right != ids[i + 1]) continue;
        if (r < rank) {
          rank = r;
          at = i;
        }
        break;
      }
    }
    if (rank == merges.size()) return ids;
    ids[at] = merges[rank].joined;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(BytePairModel, ShortAndLongPiecesFollowTheDefinitionUnderAnyOrderOfMerges) {
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    // Tokens over three letters, with merges in an order that training would not produce.
    std::vector<std::string> texts = {"a", "b", "c"};
    std::map<std::string, int32_t> id_of = {{"a", 'a'}, {"b", 'b'}, {"c", 'c'}};
    std::vector<BytePairModel::Merge> merges;
    for (int i = 0; i < 30; ++i) {
      const std::string left = texts[random() % texts.size()],
                        right = texts[random() % texts.size()];
      const auto [joined, is_new] =
          id_of.emplace(left + right, 256 + static_cast<int32_t>(id_of.size()));
      if (is_new) texts.push_back(left + right);
      merges.push_back({id_of[left], id_of[right], joined->second});
    }
    std::shuffle(merges.begin(), merges.end(), random);
    const BytePairModel model(BytesAsIds(), merges, {});
    for (const size_t size : {1, 2, 3, 7, 30, 64, 65, 150}) {
      std::string piece;
      while (piece.size() < size) piece += static_cast<char>('a' + random() % 3);
      std::vector<int32_t> ids;
      model.Encode(piece, ids);
      EXPECT_EQ(ids, Expected(merges, piece)) << "round " << round << ": " << piece;
    }
  }
}

TEST(BytePairModel, AKnownWordTakesNoMerges) {
  const std::vector<BytePairModel::Merge> merges = {{'a', 'b', 300}};
  const BytePairModel model(BytesAsIds(), merges, {{"abc", 400}});
  std::vector<int32_t> ids;
  model.Encode("abc", ids);
  model.Encode("abcd", ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{400, 300, 'c', 'd'}));
}

TEST(PieceCache, KeepsWhatItWasGivenThroughManyPieces) {
  PieceCache cache;
  for (int round = 0; round < 2; ++round) {
    for (int32_t i = 0; i < 150'000; ++i) {  // more pieces than the cache holds
      const std::string piece = std::to_string(i * 7919 % 100'003);
      const std::vector<int32_t> ids(static_cast<size_t>(1 + i * 7919 % 100'003 % 3),
                                     i * 7919 % 100'003);
      const auto found = cache.Find(piece);
      if (found.empty()) {
        cache.Add(piece, ids);
      } else {
        ASSERT_EQ(std::vector<int32_t>(found.begin(), found.end()), ids) << piece;
      }
    }
  }
  // The last piece is cached.
  EXPECT_EQ(cache.Find(std::to_string(149'999 * 7919 % 100'003)).front(), 149'999 * 7919 % 100'003);
}

TEST(AddedTokens, TheLongestOfThoseThatBeginFirstIsFound) {
  const std::vector<AddedToken> tokens = {{"<a>", 1}, {"<a>b", 2}, {"a>bc", 3}, {"<", 4}};
  const AddedTokens added(tokens);
  const auto hit = added.Find("x<a>bcd");
  ASSERT_TRUE(hit.has_value());
  EXPECT_EQ(hit->begin, 1u);
  EXPECT_EQ(hit->bytes, 4u);
  EXPECT_EQ(hit->id, 2);
  EXPECT_EQ(added.Find("<a")->id, 4);
  EXPECT_FALSE(added.Find("a>b").has_value());
  EXPECT_FALSE(AddedTokens({}).Find("<a>").has_value());
}

}  // namespace
}  // namespace troupe
