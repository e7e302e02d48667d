#include "data/token_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/check.h"
#include "base/temporary_directory.h"
#include "data/indexed_dataset.h"
#include "data/indexed_dataset_writer.h"

namespace troupe {
namespace {

class TokenStreamTest : public ::testing::Test {
 protected:
  // Sequences of 1, 2, 3, 1, … tokens that count up from 0.
  IndexedDataset Make(int sequences) {
    const std::string prefix = folder_.Child("d" + std::to_string(sequences));
    auto writer = IndexedDatasetWriter::Create(files_, {.prefix = prefix});
    int32_t next = 0;
    for (int s = 0; s < sequences; ++s) {
      std::vector<int32_t> tokens(static_cast<size_t>(1 + s % 3));
      std::iota(tokens.begin(), tokens.end(), next);
      next += 1 + s % 3;
      TROUPE_CHECK_OK((*writer)->Append(tokens));
      TROUPE_CHECK_OK((*writer)->EndDocument());
    }
    TROUPE_CHECK_OK((*writer)->Finish());
    auto dataset = IndexedDataset::Open(files_, prefix);
    TROUPE_CHECK_OK(dataset.status());
    return *dataset;
  }

  static std::pair<TokenStream, TokenStream> Split(const IndexedDataset& dataset, int64_t count) {
    std::vector<int64_t> ends;
    for (int64_t s = 0; s < dataset.sequences(); ++s) ends.push_back(dataset.SequenceBegin(s + 1));
    return HoldOut(dataset.token_array(), ends, count);
  }

  static std::vector<int32_t> ReadAll(const TokenStream& stream) {
    std::vector<int32_t> tokens(static_cast<size_t>(stream.tokens()));
    TROUPE_CHECK_OK(stream.Read(0, 60000, tokens));
    return tokens;
  }

  TemporaryDirectory folder_;
  PosixFileSystem files_;
};

TEST_F(TokenStreamTest, TheWholeDatasetIsItsConcatenation) {
  const IndexedDataset dataset = Make(50);
  std::vector<int32_t> expected(static_cast<size_t>(dataset.tokens()));
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(ReadAll(TokenStream(dataset.token_array())), expected);
}

TEST_F(TokenStreamTest, HoldingOutLosesAndRepeatsNothingAndTakesWholeSequencesInOrder) {
  const IndexedDataset dataset = Make(41);
  for (int64_t count = 0; count <= 41; ++count) {
    const auto [train, held_out] = Split(dataset, count);
    std::vector<int32_t> train_tokens = ReadAll(train), held_tokens = ReadAll(held_out);
    EXPECT_TRUE(std::is_sorted(train_tokens.begin(), train_tokens.end()));
    EXPECT_TRUE(std::is_sorted(held_tokens.begin(), held_tokens.end()));
    std::set<int32_t> all(train_tokens.begin(), train_tokens.end());
    all.insert(held_tokens.begin(), held_tokens.end());
    EXPECT_EQ(std::ssize(all), dataset.tokens());
    EXPECT_EQ(train.tokens() + held_out.tokens(), dataset.tokens());
    const std::set<int32_t> held(held_tokens.begin(), held_tokens.end());
    int64_t whole = 0;
    for (int64_t s = 0; s < 41; ++s) {
      const int64_t begin = dataset.SequenceBegin(s), end = dataset.SequenceBegin(s + 1);
      int64_t among = 0;
      for (int64_t t = begin; t < end; ++t) among += held.count(static_cast<int32_t>(t));
      EXPECT_TRUE(among == 0 || among == end - begin) << "sequence " << s << " is cut";
      whole += among > 0;
    }
    EXPECT_EQ(whole, count);
  }
}

TEST_F(TokenStreamTest, HeldOutSequencesAreSpreadOverTheFile) {
  const IndexedDataset dataset = Make(420);
  const std::vector<int32_t> held = ReadAll(Split(dataset, 20).second);
  // 20 parts of 21 sequences, 42 tokens each; the middle sequence of each has 2 tokens.
  std::vector<int32_t> expected;
  for (int32_t part = 0; part < 20; ++part) {
    expected.insert(expected.end(), {42 * part + 19, 42 * part + 20});
  }
  EXPECT_EQ(held, expected);
}

TEST_F(TokenStreamTest, AnyRangeIsThatOfTheWhole) {
  const auto [train, held_out] = Split(Make(60), 13);
  for (const TokenStream* stream : {&train, &held_out}) {
    const std::vector<int32_t> all = ReadAll(*stream);
    for (int64_t begin = 0; begin < stream->tokens(); ++begin) {
      for (int64_t length = 0; begin + length <= stream->tokens(); length += 1 + length / 3) {
        std::vector<int32_t> part(static_cast<size_t>(length));
        ASSERT_TRUE(stream->Read(begin, 60000, part).ok());
        EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + begin));
      }
    }
  }
}

TEST_F(TokenStreamTest, DocumentsEndAtTheirEndsAndWhereWhatFollowsIsLeftOut) {
  const IndexedDataset dataset = Make(60);
  const std::vector<int64_t> ends = {7, 8, 30, dataset.tokens()};
  const auto [train, held_out] = Split(dataset, 13);
  for (const TokenStream* stream : {&train, &held_out}) {
    const std::vector<int32_t> all = ReadAll(*stream);  // each token is its position in the file
    for (int64_t begin = 0; begin < stream->tokens(); begin += 3) {
      const int64_t length = std::min<int64_t>(11, stream->tokens() - begin);
      std::vector<int32_t> starts(static_cast<size_t>(length));
      stream->DocumentStarts(begin, ends, starts);
      int32_t start = 0;
      for (int32_t i = 0; i < length; ++i) {
        const int32_t token = all[static_cast<size_t>(begin + i)];
        const bool follows = i > 0 && token == all[static_cast<size_t>(begin + i - 1)] + 1;
        if (i > 0 && (!follows || std::count(ends.begin(), ends.end(), token) > 0)) start = i;
        EXPECT_EQ(starts[static_cast<size_t>(i)], start) << "token " << token;
      }
    }
  }
}

}  // namespace
}  // namespace troupe
