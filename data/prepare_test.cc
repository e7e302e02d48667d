#include "data/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/durable_write.h"
#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"
#include "base/text_file.h"
#include "data/byte_tokenizer.h"
#include "data/dataset_description.h"
#include "data/indexed_dataset.h"
#include "data/prefix_lock.h"
#include "data/test_files.h"
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
  const auto describes = [&](int64_t tokens, int64_t vocab_size) {
    const auto text = ReadDescription(files_, prefix);
    TROUPE_CHECK(text.ok() && *text, "{}", prefix);
    return CheckDescription(**text, prefix, tokens, vocab_size).ok();
  };
  EXPECT_TRUE(describes(count, result->vocab_size));
  EXPECT_FALSE(describes(count, result->vocab_size - 1));
  EXPECT_FALSE(describes(count + 1, result->vocab_size));

  options.end_of_document = 5;
  EXPECT_EQ(PrepareDataset(files_, options)->end_of_document, 5);
  options.tokenizer = "bytes";
  EXPECT_THAT(std::string(Message(PrepareDataset(files_, options).status())),
              ::testing::HasSubstr("bytes has a fixed one"));
  // Another tokenizer on the same prefix replaces the old description.
  options.end_of_document.reset();
  ASSERT_TRUE(PrepareDataset(files_, options).ok());
  EXPECT_TRUE(describes(19 + 1 + 11 + 1, 257));
}

constexpr std::string_view kLines =
    "{\"text\": \"one\", \"body\": \"eins\"}\n\n{\"text\": \"\", \"body\": \"\"}\n"
    "{\"body\": \"zwei\", \"text\": \"t\\u0077o\"}";

TEST_F(PrepareTest, MakesEachLineOfJsonLinesADocument) {
  Write("in/a.jsonl", kLines);
  Write("in/b.txt", "text");
  Write("in/c.jsonl.gz", Gzip(kLines));
  Write("in/d.jsonl.zst", Zstd(kLines));
  const auto result = PrepareDataset(files_, Options());
  ASSERT_TRUE(result.ok()) << ToString(result.status());
  EXPECT_EQ(Text(), "one|two|text|one|two|one|two|");
  EXPECT_EQ(result->documents, 7);
  EXPECT_EQ(result->text_bytes, 3 * 6 + 4);
  EXPECT_EQ(result->skipped_empty, 3);
  PrepareOptions options = Options();
  options.json_key = "body";
  ASSERT_TRUE(PrepareDataset(files_, options).ok());
  EXPECT_EQ(Text(), "eins|zwei|text|eins|zwei|eins|zwei|");
  // A file that is named is read like one of a folder.
  options.paths = {folder_.Child("in/c.jsonl.gz")};
  ASSERT_TRUE(PrepareDataset(files_, options).ok());
  EXPECT_EQ(Text(), "eins|zwei|");
}

TEST_F(PrepareTest, GivesJsonLinesTheTokensOfTheSameTexts) {
  const std::string tokenizer_path = "data/testdata/gpt2_tokenizer.json";
  const std::string large(1'100'000, 'q');  // more than a part of the file
  for (const std::string& tokenizer : {std::string("bytes"), tokenizer_path}) {
    Write("in/a", "hello  world\n");
    Write("in/b", large);
    PrepareOptions options = Options();
    options.tokenizer = tokenizer;
    ASSERT_TRUE(PrepareDataset(files_, options).ok());
    const std::string expected =
        *ReadFile(files_, folder_.Child("out/data.bin"), 1 << 24, SymbolicLinks::kRefuse);
    Write("lines/a.jsonl", "{\"text\": \"hello  world\\n\"}\n{\"text\": \"" + large + "\"}\n");
    options.paths = {folder_.Child("lines")};
    const auto result = PrepareDataset(files_, options);
    ASSERT_TRUE(result.ok()) << ToString(result.status());
    EXPECT_EQ(result->text_bytes, 13 + 1'100'000);
    EXPECT_EQ(*ReadFile(files_, folder_.Child("out/data.bin"), 1 << 24, SymbolicLinks::kRefuse),
              expected);
  }
}

TEST_F(PrepareTest, RefusesWhatLooksLikeJsonLinesUnlessAFlagStatesWhatTheyAre) {
  PrepareOptions options = Options();
  for (const auto& [name, content] : {std::pair("in/a.json", std::string(kLines)),
                                      {"in/a.json.gz", Gzip(kLines)},
                                      {"in/a", Zstd(kLines)}}) {
    Write(name, content);
    options.json_key.reset();
    const auto refused = PrepareDataset(files_, options);
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(refused.status())),
                ::testing::AllOf(::testing::HasSubstr(folder_.Child(name) + " looks like JSON"),
                                 ::testing::HasSubstr("--json-key KEY"),
                                 ::testing::HasSubstr("--json-as-text")));
    options.json_key = "text";
    ASSERT_TRUE(PrepareDataset(files_, options).ok());
    EXPECT_EQ(Text(), "one|two|");
    TROUPE_CHECK_OK(files_.Remove(folder_.Child(name)));
  }
  options.json_key.reset();
  options.json_as_text = true;
  for (const char* name : {"in/a.json", "in/b.jsonl"}) Write(name, kLines);
  ASSERT_TRUE(PrepareDataset(files_, options).ok());
  EXPECT_EQ(Text(), std::string(kLines) + "|" + std::string(kLines) + "|");
}

TEST_F(PrepareTest, RefusesALongLineThatBeginsLikeAnObject) {
  const std::string lines = "{\"a\": \"" + std::string(3 << 20, 'x') + "\", \"text\": \"one\"}\n";
  PrepareOptions options = Options();
  for (const std::string& content : {lines, Gzip(lines)}) {
    Write("in/a.json", content);
    options.json_key.reset();
    EXPECT_THAT(std::string(Message(PrepareDataset(files_, options).status())),
                ::testing::HasSubstr("looks like JSON lines"));
    options.json_key = "text";
    ASSERT_TRUE(PrepareDataset(files_, options).ok());
    EXPECT_EQ(Text(), "one|");
  }
}

TEST_F(PrepareTest, NamesTheDamageOfCompressedJsonLinesOfAnotherName) {
  const std::string line = "{\"text\": \"" + std::string(1 << 19, 'x') + "\"}\n";
  std::string damaged = Gzip(line + line + line + line);
  damaged.resize(damaged.size() - 20);
  Write("in/a.json.gz", damaged);
  Write("in/b.txt", "text");
  PrepareOptions options = Options();
  options.json_key = "text";
  EXPECT_THAT(std::string(Message(PrepareDataset(files_, options).status())),
              ::testing::HasSubstr("in/a.json.gz"));
}

TEST_F(PrepareTest, RefusesAnObjectAloneWithoutTheStatedKey) {
  Write("in/a.json", "{\"a\": 1}\n");
  PrepareOptions options = Options();
  options.json_key = "b";
  EXPECT_THAT(std::string(Message(PrepareDataset(files_, options).status())),
              ::testing::HasSubstr("in/a.json:1: the line has no key \"b\"; its keys are [\"a\"]"));
}

TEST_F(PrepareTest, LeavesJsonDocumentsTextsAndCompressedTextsAsTheyWere) {
  const std::string document = "{\n  \"text\": \"x\"\n}\n";
  Write("in/a.json", document);
  Write("in/c.txt.gz", Gzip("text"));
  Write("in/d.txt.zst", Zstd("text"));
  Write("in/e", "{ x }\n{ y }\n");
  PrepareOptions options = Options();
  for (const auto& key : {std::optional<std::string>(), std::optional<std::string>("text")}) {
    options.json_key = key;
    const auto result = PrepareDataset(files_, options);
    ASSERT_TRUE(result.ok()) << ToString(result.status());
    EXPECT_EQ(Text(), document + "|{ x }\n{ y }\n|");
    EXPECT_EQ(result->skipped_binary, 2);
  }
  Write("in/b.json", "{\"a\": 1}\n");
  options.json_key.reset();
  ASSERT_TRUE(PrepareDataset(files_, options).ok());
  EXPECT_EQ(Text(), document + "|{\"a\": 1}\n|{ x }\n{ y }\n|");
}

TEST_F(PrepareTest, ALineThatIsNoDocumentFailsWithItsPlaceAndLeavesNothing) {
  Write("in/a.jsonl", "{\"text\": \"one\"}\n{\"body\": \"two\"}\n");
  const auto refused = PrepareDataset(files_, Options());
  EXPECT_THAT(std::string(Message(refused.status())),
              ::testing::HasSubstr(folder_.Child("in/a.jsonl:2: the line has no key \"text\"")));
  EXPECT_TRUE(files_.List(folder_.Child("out"))->empty());
  Write("in/a.jsonl", Gzip(kLines).substr(0, 40));
  EXPECT_EQ(PrepareDataset(files_, Options()).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(files_.List(folder_.Child("out"))->empty());
  Write("in/a.jsonl", "{\"text\": \"\"}\n");
  EXPECT_THAT(std::string(Message(PrepareDataset(files_, Options()).status())),
              ::testing::HasSubstr("no document found"));
}

TEST_F(PrepareTest, CountsJsonLinesWithoutALineAsEmpty) {
  Write("in/a.jsonl", "{\"text\": \"one\"}\n");
  Write("in/b.jsonl", "\n \r\n\n");
  Write("in/c.jsonl", "\xEF\xBB\xBF");
  Write("in/d.jsonl.gz", Gzip(""));
  Write("in/e.jsonl.zst", Zstd("\n"));
  const auto result = PrepareDataset(files_, Options());
  ASSERT_TRUE(result.ok()) << ToString(result.status());
  EXPECT_EQ(Text(), "one|");
  EXPECT_EQ(result->skipped_empty, 4);
  TROUPE_CHECK_OK(files_.Remove(folder_.Child("in/a.jsonl")));
  EXPECT_THAT(std::string(Message(PrepareDataset(files_, Options()).status())),
              ::testing::HasSubstr("4 empty files"));
}

TEST_F(PrepareTest, RefusesAPointerOfGitLfsByItsName) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n";
  for (const char* name : {"in/a.txt", "in/b.jsonl", "in/c.jsonl.gz", "in/d.json"}) {
    Write(name, pointer);
    for (const bool as_text : {false, true}) {
      PrepareOptions options = Options();
      options.json_as_text = as_text;
      const Status refused = PrepareDataset(files_, options).status();
      EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(Message(refused)),
                  ::testing::HasSubstr(folder_.Child(name) + ": is a Git LFS pointer"));
      EXPECT_THAT(std::string(Message(refused)), ::testing::HasSubstr("git lfs pull"));
    }
    EXPECT_TRUE(files_.List(folder_.Child("out"))->empty());
    TROUPE_CHECK_OK(files_.Remove(folder_.Child(name)));
  }
}

TEST_F(PrepareTest, CountsWhatOfJsonLinesIsNoUnicode) {
  Write("in/a.jsonl", "{\"text\": \"\xFF\\ud83d\"}\n{\"text\": \"x\"}\n");
  const auto result = PrepareDataset(files_, Options());
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(Text(), "\xEF\xBF\xBD\xEF\xBF\xBD|x|");
  EXPECT_EQ(result->replaced_parts, 2);
  EXPECT_EQ(result->replaced_documents, 1);
}

TEST_F(PrepareTest, DescribesTheBytesOfTheText) {
  Write("in/a.jsonl", kLines);
  Write("in/b", "bad \xFF");
  PrepareOptions options = Options();
  options.tokenizer = "data/testdata/gpt2_tokenizer.json";
  const auto result = PrepareDataset(files_, options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->text_bytes, 6 + 7);  // U+FFFD has three bytes
  EXPECT_THAT(
      *ReadFile(files_, DescriptionPath(options.output_prefix), 1 << 20, SymbolicLinks::kRefuse),
      ::testing::HasSubstr("\"text_bytes\":13}"));
}

TEST_F(PrepareTest, ReportsItsProgressUpToAllBytes) {
  const std::string large = "{\"text\": \"" + std::string(1'100'000, 'q') + "\"}\n";
  Write("in/a/a.jsonl", large + large);
  Write("in/b", std::string(1'100'000, 'q'));
  PrepareOptions options = Options();
  std::vector<PrepareProgress> seen;
  options.progress = [&](const PrepareProgress& progress) { seen.push_back(progress); };
  ASSERT_TRUE(PrepareDataset(files_, options).ok());
  ASSERT_GE(seen.size(), 5);
  for (size_t i = 1; i < seen.size(); ++i) {
    EXPECT_GE(seen[i].bytes_read, seen[i - 1].bytes_read);
    EXPECT_GE(seen[i].tokens, seen[i - 1].tokens);
  }
  EXPECT_EQ(seen.front().bytes_total, static_cast<int64_t>(2 * large.size()) + 1'100'000);
  EXPECT_EQ(seen.back().bytes_read, seen.back().bytes_total);
  EXPECT_EQ(seen.back().documents, 3);
}

TEST_F(PrepareTest, APrefixThatAnotherProcessWritesIsRefusedAndItsFilesStay) {
  Write("in/a.txt", "one");
  TROUPE_CHECK_OK(PrepareDataset(files_, Options()).status());
  Write("in/a.txt", "other");
  {
    const auto other = PrefixLock::Acquire(folder_.Child("out/data"));
    ASSERT_TRUE(other.ok()) << ToString(other.status());
    Write("out/data.bin.tmp", "its tokens");
    const auto refused = PrepareDataset(files_, Options());
    EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(ToString(refused.status()),
                ::testing::HasSubstr("out/data: another process writes this dataset"));
    EXPECT_EQ(*ReadTextFile(folder_.Child("out/data.bin.tmp")), "its tokens");
    EXPECT_EQ(Text(), "one|");
  }
  // A process that was killed leaves the file.
  Write("out/data.lock", "");
  TROUPE_CHECK_OK(PrepareDataset(files_, Options()).status());
  EXPECT_EQ(Text(), "other|");
  EXPECT_FALSE(files_.Stat(folder_.Child("out/data.lock"), SymbolicLinks::kRefuse).ok());
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
