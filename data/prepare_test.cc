#include "data/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"
#include "data/byte_tokenizer.h"
#include "data/dataset_description.h"
#include "data/indexed_dataset.h"
#include "data/tokenizer_file.h"

namespace troupe {
namespace {

class PrepareTest : public ::testing::Test {
 protected:
  void Write(std::string_view name, std::string_view text) {
    const std::string path = folder_.Child(name);
    TROUPE_CHECK_OK(MakeDirectories(files_, ParentDirectory(path)));
    TROUPE_CHECK_OK(WriteFileDurably(files_, path, AsBytes(text)));
  }
  PrepareOptions Options() {
    return {.output_prefix = folder_.Child("out/data"), .paths = {folder_.Child("in")}};
  }
  // Returns the tokens of the prepared dataset as text, with `|` for an end of document.
  std::string Text() {
    const auto dataset = IndexedDataset::Open(files_, folder_.Child("out/data"));
    TROUPE_CHECK_OK(dataset.status());
    std::vector<int32_t> tokens(static_cast<size_t>(dataset->tokens()));
    TROUPE_CHECK_OK(dataset->Read(0, ByteTokenizer::kVocabSize, tokens));
    std::string text;
    for (const int32_t token : tokens) {
      text += token == ByteTokenizer::kEndOfDocument ? '|' : static_cast<char>(token);
    }
    return text;
  }

  TemporaryDirectory folder_;
  PosixFileSystem files_;
};

TEST_F(PrepareTest, TakesEveryTextFileInTheOrderOfNamesAsOneDocument) {
  Write("in/b.h", "bee");
  Write("in/a/z.h", "zed");
  Write("in/a/y.h", "\xC3\xA9");
  Write("in/c.h", "sea");
  const auto result = PrepareDataset(files_, Options());
  ASSERT_TRUE(result.ok()) << ToString(result.status());
  EXPECT_EQ(result->documents, 4);
  EXPECT_EQ(result->tokens, 15);
  EXPECT_EQ(result->files, (std::vector<std::string>{folder_.Child("out/data.bin"),
                                                     folder_.Child("out/data.idx")}));
  EXPECT_EQ(Text(), "\xC3\xA9|zed|bee|sea|");
}

TEST_F(PrepareTest, CountsWhatItLeavesOut) {
  Write("in/text", "x");
  Write("in/binary", std::string_view("a\0b", 3));
  Write("in/empty", "");
  ASSERT_EQ(symlink("..", folder_.Child("in/loop").c_str()), 0);
  ASSERT_EQ(mkfifo(folder_.Child("in/fifo").c_str(), 0600), 0);
  Write("in/closed", "secret");
  FaultyFileSystem faulty(files_);
  faulty.Add(
      {.operation = FileOperation::kOpen, .path_contains = "closed", .error_number = EACCES});
  const auto result = PrepareDataset(faulty, Options());
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->documents, 1);
  EXPECT_EQ(result->skipped_binary, 1);
  EXPECT_EQ(result->skipped_empty, 1);
  EXPECT_EQ(result->skipped_links, 1);
  EXPECT_EQ(result->skipped_special, 1);
  EXPECT_EQ(result->skipped_unreadable, 1);
  EXPECT_EQ(Text(), "x|");
}

TEST_F(PrepareTest, ReadsFilesLargerThanItsBuffer) {
  const std::string large(3'000'001, 'q');
  Write("in/large", large);
  const auto result = PrepareDataset(files_, Options());
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(Text(), large + "|");
}

TEST_F(PrepareTest, RefusesWhatItCannotDoAndLeavesNothing) {
  PrepareOptions options = Options();
  EXPECT_EQ(PrepareDataset(files_, options).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(files_.MakeDirectory(folder_.Child("in")).ok());
  EXPECT_EQ(PrepareDataset(files_, options).status().code(), StatusCode::kInvalidArgument);
  options.tokenizer = "words";
  EXPECT_EQ(PrepareDataset(files_, options).status().code(), StatusCode::kInvalidArgument);
  Write("in/text", "x");
  options.tokenizer = "bytes";
  FaultyFileSystem faulty(files_);
  faulty.Add({.operation = FileOperation::kSync, .path_contains = ".bin", .error_number = EIO});
  EXPECT_FALSE(PrepareDataset(faulty, options).ok());
  EXPECT_TRUE(files_.List(folder_.Child("out"))->empty());
}

TEST_F(PrepareTest, EncodesTextWithATokenizerFileAndDescribesTheVocabulary) {
  const std::string tokenizer_path = "data/testdata/llama3_tokenizer.json";
  const auto tokenizer = OpenTokenizerFile(files_, tokenizer_path, {});
  ASSERT_TRUE(tokenizer.ok());
  std::vector<int32_t> expected;
  for (const char* text : {"hello <|pad|> world", "bad \xEF\xBF\xBD\xEF\xBF\xBD end"}) {
    ASSERT_TRUE((*tokenizer)->Encode(text, expected).ok());
    expected.push_back((*tokenizer)->end_of_document());
  }
  Write("in/a", "hello <|pad|> world");
  Write("in/b", "bad \xFF\xE2\x82 end");
  PrepareOptions options = Options();
  options.tokenizer = tokenizer_path;
  const auto result = PrepareDataset(files_, options);
  ASSERT_TRUE(result.ok()) << ToString(result.status());
  EXPECT_EQ(result->replaced_parts, 2);
  EXPECT_EQ(result->replaced_documents, 1);
  EXPECT_EQ(result->vocab_size, (*tokenizer)->vocab_size());
  EXPECT_EQ(result->end_of_document, (*tokenizer)->end_of_document());
  const auto dataset = IndexedDataset::Open(files_, folder_.Child("out/data"));
  ASSERT_TRUE(dataset.ok());
  std::vector<int32_t> tokens(static_cast<size_t>(dataset->tokens()));
  ASSERT_TRUE(dataset->Read(0, result->vocab_size, tokens).ok());
  EXPECT_EQ(tokens, expected);
  // The dataset has its description.
  const int64_t count = dataset->tokens();
  const std::string prefix = folder_.Child("out/data");
  EXPECT_TRUE(CheckDescription(files_, prefix, count, result->vocab_size).ok());
  EXPECT_FALSE(CheckDescription(files_, prefix, count, result->vocab_size - 1).ok());
  EXPECT_FALSE(CheckDescription(files_, prefix, count + 1, result->vocab_size).ok());

  options.end_of_document = 5;
  EXPECT_EQ(PrepareDataset(files_, options)->end_of_document, 5);
  options.tokenizer = "bytes";
  EXPECT_THAT(std::string(Message(PrepareDataset(files_, options).status())),
              ::testing::HasSubstr("bytes has a fixed one"));
  // Another tokenizer on the same prefix replaces the old description.
  options.end_of_document.reset();
  ASSERT_TRUE(PrepareDataset(files_, options).ok());
  EXPECT_TRUE(CheckDescription(files_, prefix, 19 + 1 + 11 + 1, 257).ok());
}

TEST_F(PrepareTest, TheOutputMayNotLookLikeAFileOfLlmC) {
  PrepareOptions options = Options();
  options.output_prefix += ".bin";
  EXPECT_THAT(std::string(Message(PrepareDataset(files_, options).status())),
              ::testing::HasSubstr("ends in .bin"));
}

TEST(ByteTokenizer, RoundTripsEveryByte) {
  std::string text;
  for (int i = 0; i < 256; ++i) text.push_back(static_cast<char>(i));
  std::vector<int32_t> ids;
  ASSERT_TRUE(ByteTokenizer().Encode(text, ids).ok());
  ids.push_back(ByteTokenizer::kEndOfDocument);
  EXPECT_EQ(ByteTokenizer::Decode(ids), text);
}

}  // namespace
}  // namespace troupe
