#include "data/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"
#include "data/byte_tokenizer.h"
#include "data/indexed_dataset.h"

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
  // The tokens of the prepared dataset as text, `|` for an end of document.
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
