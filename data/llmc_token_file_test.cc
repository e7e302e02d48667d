#include "data/llmc_token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/check.h"
#include "base/temporary_directory.h"
#include "data/dataset.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LlmcTokenFileTest : public ::testing::Test {
 protected:
  // Writes a file byte by byte from the definition: 256 int32, then the tokens.
  template <typename Token>
  std::string Write(int32_t magic, int32_t version, int32_t count,
                    const std::vector<Token>& tokens) {
    std::vector<int32_t> header(256, 0);
    header[0] = magic;
    header[1] = version;
    header[2] = count;
    const std::string path = folder_.Child("tokens.bin");
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(header.data()), 1024);
    file.write(reinterpret_cast<const char*>(tokens.data()),
               static_cast<std::streamsize>(tokens.size() * sizeof(Token)));
    return path;
  }
  static std::vector<int32_t> All(const LlmcTokenFile& file) {
    std::vector<int32_t> tokens(static_cast<size_t>(file.tokens().tokens()));
    TROUPE_CHECK_OK(file.tokens().Read(0, 200'000, tokens));
    return tokens;
  }
  std::string Refusal(const std::string& path) {
    const Status status = LlmcTokenFile::Open(files_, path).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return std::string(Message(status));
  }

  TemporaryDirectory folder_;
  PosixFileSystem files_;
};

TEST_F(LlmcTokenFileTest, ReadsGpt2AndLlama3Files) {
  const auto gpt2 =
      LlmcTokenFile::Open(files_, Write<uint16_t>(20240520, 1, 5, {50256, 1, 65535, 50256, 2}));
  ASSERT_TRUE(gpt2.ok()) << ToString(gpt2.status());
  EXPECT_THAT(All(*gpt2), ElementsAre(50256, 1, 65535, 50256, 2));
  EXPECT_THAT(gpt2->DocumentEnds(), ElementsAre(3, 5));

  // The file begins in the middle of a document.
  const auto llama3 =
      LlmcTokenFile::Open(files_, Write<uint32_t>(20240801, 7, 4, {7, 128000, 8, 128255}));
  ASSERT_TRUE(llama3.ok()) << ToString(llama3.status());
  EXPECT_THAT(All(*llama3), ElementsAre(7, 128000, 8, 128255));
  EXPECT_THAT(llama3->DocumentEnds(), ElementsAre(1, 4));
}

TEST_F(LlmcTokenFileTest, DocumentsAreFoundInALongFile) {
  std::vector<uint16_t> tokens(20'000, 5);
  std::vector<int64_t> expected;
  for (int64_t at = 0; at < 20'000; at += 4095) {
    tokens[static_cast<size_t>(at)] = 50256;
    if (at > 0) expected.push_back(at);
  }
  expected.push_back(20'000);
  const auto file = LlmcTokenFile::Open(files_, Write(20240520, 1, 20'000, tokens));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->DocumentEnds(), expected);
}

TEST_F(LlmcTokenFileTest, RefusesAHeaderThatDisagreesWithTheFile) {
  using Gpt2 = std::vector<uint16_t>;
  EXPECT_THAT(Refusal(Write(20240521, 1, 2, Gpt2{1, 2})), HasSubstr("magic 20240521 is neither"));
  // Half of a dataset in Megatron's format has another name.
  EXPECT_THAT(Refusal(Write(20240521, 1, 2, Gpt2{1, 2})),
              HasSubstr("a pair PREFIX.bin and PREFIX.idx is named by its PREFIX"));
  EXPECT_THAT(Refusal(Write(20240520, 7, 2, Gpt2{1, 2})), HasSubstr("version 7 is not 1"));
  EXPECT_THAT(Refusal(Write(20240801, 1, 2, Gpt2{1, 2})), HasSubstr("version 1 is not 7"));
  EXPECT_THAT(Refusal(Write(20240520, 1, 3, Gpt2{1, 2})), HasSubstr("token count 3"));
  EXPECT_THAT(Refusal(Write(20240520, 1, 1, Gpt2{1, 2})), HasSubstr("token count 1"));
  EXPECT_THAT(Refusal(Write(20240520, 1, -1, Gpt2{1, 2})), HasSubstr("token count -1"));
  EXPECT_THAT(Refusal(Write(20240520, 1, INT32_MAX, Gpt2{1, 2})), HasSubstr("token count 2147"));
  EXPECT_THAT(Refusal(Write(20240520, 1, INT32_MIN, Gpt2{1, 2})), HasSubstr("token count -2147"));
  const std::string path = Write(20240520, 1, 0, Gpt2{});
  EXPECT_TRUE(LlmcTokenFile::Open(files_, path).ok());
  ASSERT_EQ(truncate(path.c_str(), 1023), 0);
  EXPECT_THAT(Refusal(path), HasSubstr("size 1023 is below the 1024 bytes of llm.c's header; a "
                                       "pair PREFIX.bin and PREFIX.idx is named by its PREFIX"));
  EXPECT_EQ(LlmcTokenFile::Open(files_, folder_.Child("none.bin")).status().code(),
            StatusCode::kNotFound);
}

TEST_F(LlmcTokenFileTest, NamesAPointerOfGitLfs) {
  const std::string path = folder_.Child("pointer.bin");
  std::ofstream(path) << "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n";
  EXPECT_THAT(Refusal(path), HasSubstr(path + ": is a Git LFS pointer"));
}

TEST_F(LlmcTokenFileTest, LinksAreFollowedAndOtherKindsOfFileRefused) {
  const std::string path = Write(20240520, 1, 2, std::vector<uint16_t>{1, 2});
  ASSERT_EQ(symlink(path.c_str(), folder_.Child("link.bin").c_str()), 0);
  EXPECT_TRUE(LlmcTokenFile::Open(files_, folder_.Child("link.bin")).ok());
  ASSERT_EQ(symlink("loop.bin", folder_.Child("loop.bin").c_str()), 0);
  EXPECT_FALSE(LlmcTokenFile::Open(files_, folder_.Child("loop.bin")).ok());
  EXPECT_FALSE(LlmcTokenFile::Open(files_, folder_.path()).ok());
}

TEST_F(LlmcTokenFileTest, ATokenAboveEveryVocabularyIsNamedWhenItIsRead) {
  const auto file =
      LlmcTokenFile::Open(files_, Write<uint32_t>(20240801, 7, 3, {1, 0xFFFFFFFF, 128000}));
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(file->DocumentEnds(), ElementsAre(2, 3));
  std::vector<int32_t> tokens(3);
  EXPECT_THAT(
      std::string(Message(file->tokens().Read(0, 200'000, tokens))),
      HasSubstr("tokens.bin: token 4294967295 at position 1 is not in [0, vocab_size 200000)"));
}

TEST_F(LlmcTokenFileTest, ItIsTrainedOnAndHeldOutByDocuments) {
  std::vector<uint16_t> tokens;
  for (int document = 0; document < 10; ++document) {
    tokens.push_back(50256);
    for (int i = 1; i < 20; ++i) tokens.push_back(static_cast<uint16_t>(document));
  }
  const std::string path = Write(20240520, 1, 200, tokens);
  const auto dataset = Dataset::Open(files_, {.train = path,
                                              .validation_fraction = 0.2,
                                              .sequence_length = 8,
                                              .global_batch_size = 4,
                                              .vocab_size = 50304});
  ASSERT_TRUE(dataset.ok()) << ToString(dataset.status());
  EXPECT_EQ(dataset->train_tokens(), 160);
  EXPECT_EQ(dataset->validation_tokens(), 40);
  EXPECT_EQ(dataset->validation_samples(), 4);
}

}  // namespace
}  // namespace troupe
