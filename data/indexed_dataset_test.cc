#include "data/indexed_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/check.h"
#include "base/durable_write.h"
#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"
#include "data/dataset_description.h"
#include "data/indexed_dataset_writer.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// Builds files byte by byte from the definition of the format, without the writer.
class Bytes {
 public:
  template <typename T>
  Bytes& Add(T value) {
    const size_t at = text_.size();
    text_.resize(at + sizeof value);
    std::memcpy(text_.data() + at, &value, sizeof value);
    return *this;
  }
  Bytes& Text(std::string_view text) {
    text_ += text;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Documents [5 6 7], [300] and an empty one: two sequences, three documents.
std::string GoldenIndex() {
  return Bytes()
      .Text(std::string_view("MMIDIDX\0\0", 9))
      .Add<uint64_t>(1)
      .Add<uint8_t>(8)
      .Add<uint64_t>(2)
      .Add<uint64_t>(4)
      .Add<int32_t>(3)
      .Add<int32_t>(1)
      .Add<int64_t>(0)
      .Add<int64_t>(6)
      .Add<int64_t>(0)
      .Add<int64_t>(1)
      .Add<int64_t>(2)
      .Add<int64_t>(2)
      .text();
}
std::string GoldenData() {
  return Bytes().Add<uint16_t>(5).Add<uint16_t>(6).Add<uint16_t>(7).Add<uint16_t>(300).text();
}

class IndexedDatasetTest : public ::testing::Test {
 protected:
  std::string prefix() const { return folder_.Child("d"); }
  void Write(const std::string& index, const std::string& data) {
    TROUPE_CHECK_OK(WriteFileDurably(files_, prefix() + ".idx", AsBytes(index)));
    TROUPE_CHECK_OK(WriteFileDurably(files_, prefix() + ".bin", AsBytes(data)));
  }
  std::string ReadBack(const std::string& suffix) {
    return *ReadFile(files_, prefix() + suffix, 1 << 20, SymbolicLinks::kRefuse);
  }

  TemporaryDirectory folder_;
  PosixFileSystem files_;
};

TEST_F(IndexedDatasetTest, ReadsAnIndexMadeByteByByteFromTheDefinition) {
  for (const bool modes : {false, true}) {
    Write(GoldenIndex() + (modes ? std::string(2, '\0') : ""), GoldenData());
    const auto dataset = IndexedDataset::Open(files_, prefix());
    ASSERT_TRUE(dataset.ok()) << ToString(dataset.status());
    EXPECT_EQ(dataset->sequences(), 2);
    EXPECT_EQ(dataset->documents(), 3);
    EXPECT_EQ(dataset->tokens(), 4);
    EXPECT_EQ(dataset->SequenceBegin(1), 3);
    EXPECT_EQ(dataset->SequenceBegin(2), 4);
    EXPECT_EQ(dataset->DocumentBegin(3), 2);
    int32_t tokens[4];
    ASSERT_TRUE(dataset->Read(0, 301, tokens).ok());
    EXPECT_THAT(tokens, ::testing::ElementsAre(5, 6, 7, 300));
  }
}

TEST_F(IndexedDatasetTest, TheWriterMakesTheSameBytes) {
  auto writer = IndexedDatasetWriter::Create(files_, {.prefix = prefix()});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Append(std::array{5, 6}).ok());
  ASSERT_TRUE((*writer)->Append(std::array{7}).ok());
  ASSERT_TRUE((*writer)->EndDocument().ok());
  ASSERT_TRUE((*writer)->Append(std::array{300}).ok());
  ASSERT_TRUE((*writer)->EndDocument().ok());
  ASSERT_TRUE((*writer)->EndDocument().ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_EQ(ReadBack(".idx"), GoldenIndex());
  EXPECT_EQ(ReadBack(".bin"), GoldenData());
  EXPECT_EQ(files_.List(folder_.path())->size(), 2u);  // no temporary file is left
}

TEST_F(IndexedDatasetTest, RefusesTruncatedAndLyingFilesNamingTheField) {
  const auto patched = [](size_t at, auto value) {
    std::string text = GoldenIndex();
    std::memcpy(text.data() + at, &value, sizeof value);
    return text;
  };
  struct Case {
    std::string index, data, message;
  };
  const std::string good = GoldenIndex(), data = GoldenData();
  // Offsets: version 9, dtype 17, sequences 18, documents 26, lengths 34, pointers 42, document
  // indices 58.
  const Case cases[] = {
      {"", data, "size 0 is below the 34 bytes of the header"},
      {good.substr(0, 33), data, "size 33 is below"},
      {patched(0, 'X'), data, "magic"},
      {patched(9, uint64_t{2}), data, "version 2 is not 1"},
      {patched(17, uint8_t{0}), data, "dtype code 0"},
      {patched(17, uint8_t{9}), data, "dtype code 9"},
      {patched(17, uint8_t{255}), data, "dtype code 255"},
      {patched(18, ~uint64_t{0}), data, "sequence_count 18446744073709551615"},
      {patched(18, uint64_t{1} << 63), data, "sequence_count 9223372036854775808"},
      {patched(18, uint64_t{3}), data, "size 90 is neither"},
      {patched(26, uint64_t{1} << 61), data, "document_count 2305843009213693952"},
      {patched(26, uint64_t{0}), data, "document_count is 0"},
      {good.substr(0, 89), data, "size 89 is neither"},
      {good + "abc", data, "size 93 is neither"},
      {patched(34, int32_t{-1}), data, "lengths[0] is -1"},
      {patched(34, int32_t{0x7FFFFFFF}), data, ".bin: size 8 is too short"},
      {patched(42, int64_t{2}), data, "byte_pointers[0] is 2"},
      {patched(50, int64_t{-6}), data, "byte_pointers[1] is -6"},
      {patched(50, int64_t{1} << 62), data, "byte_pointers[1] is 4611686018427387904"},
      {patched(58, int64_t{1}), data, "document_indices[0] is 1"},
      {patched(66, int64_t{-1}), data, "document_indices[1] is -1"},
      {patched(66, int64_t{3}), data, "document_indices[1] is 3"},
      {patched(82, int64_t{1}), data, "document_indices[3] is 1"},
      {good, data.substr(0, 7), ".bin: size 7 is too short"},
      {good, data + "xx", ".bin: size 10 is not 8"},
      {good, "", ".bin: size 0 is too short"},
  };
  for (const Case& c : cases) {
    Write(c.index, c.data);
    const auto dataset = IndexedDataset::Open(files_, prefix());
    EXPECT_EQ(dataset.status().code(), StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(Message(dataset.status())), HasSubstr(c.message));
    EXPECT_THAT(std::string(Message(dataset.status())), HasSubstr(prefix()));
  }
  ASSERT_TRUE(files_.Remove(prefix() + ".bin").ok());
  EXPECT_EQ(IndexedDataset::Open(files_, prefix()).status().code(), StatusCode::kNotFound);
}

TEST_F(IndexedDatasetTest, NamesAPointerOfGitLfsInPlaceOfEitherFile) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 8\n";
  const auto refusal = [&] {
    const Status status = IndexedDataset::Open(files_, prefix()).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return std::string(Message(status));
  };
  Write(pointer, pointer);
  EXPECT_THAT(refusal(), HasSubstr(prefix() + ".idx: is a Git LFS pointer"));
  Write(GoldenIndex(), pointer);
  EXPECT_THAT(refusal(), HasSubstr(prefix() + ".bin: is a Git LFS pointer"));
}

TEST_F(IndexedDatasetTest, TokensOfOneByteMayBeThoseOfAPointer) {
  const std::string tokens = "version https://git-lfs.github.com/spec/v1\n";
  const auto length = static_cast<int32_t>(tokens.size());
  Write(Bytes()
            .Text(std::string_view("MMIDIDX\0\0", 9))
            .Add<uint64_t>(1)
            .Add<uint8_t>(1)
            .Add<uint64_t>(1)
            .Add<uint64_t>(2)
            .Add<int32_t>(length)
            .Add<int64_t>(0)
            .Add<int64_t>(0)
            .Add<int64_t>(1)
            .text(),
        tokens);
  const auto dataset = IndexedDataset::Open(files_, prefix());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->tokens(), length);
}

TEST_F(IndexedDatasetTest, LinksAreFollowedAndOtherKindsOfFileRefused) {
  Write(GoldenIndex(), GoldenData());
  for (const char* suffix : {".idx", ".bin"}) {
    ASSERT_EQ(
        symlink((prefix() + suffix).c_str(), folder_.Child("link" + std::string(suffix)).c_str()),
        0);
    ASSERT_EQ(symlink(("loop" + std::string(suffix)).c_str(),
                      folder_.Child("loop" + std::string(suffix)).c_str()),
              0);
    ASSERT_EQ(mkfifo(folder_.Child("fifo" + std::string(suffix)).c_str(), 0600), 0);
    ASSERT_EQ(mkdir(folder_.Child("folder" + std::string(suffix)).c_str(), 0700), 0);
  }
  EXPECT_TRUE(IndexedDataset::Open(files_, folder_.Child("link")).ok());
  for (const char* name : {"loop", "fifo", "folder"}) {
    EXPECT_FALSE(IndexedDataset::Open(files_, folder_.Child(name)).ok()) << name;
  }
}

// Megatron-core's own builder made data/testdata/megatron (tests/interop/make_megatron.py).
struct MegatronFile {
  std::string prefix;
  int dtype;
  std::vector<std::vector<std::vector<int32_t>>> documents;  // [document][sequence][token]
};

std::vector<MegatronFile> MegatronFiles() {
  std::ifstream file("data/testdata/megatron/expected.json");
  std::vector<MegatronFile> files;
  const nlohmann::json expected = nlohmann::json::parse(file);
  for (const auto& [name, entry] : expected.items()) {
    files.push_back({"data/testdata/megatron/" + name, entry["dtype"], entry["documents"]});
  }
  return files;
}

TEST_F(IndexedDatasetTest, ReadsWhatMegatronWrites) {
  const std::vector<MegatronFile> made = MegatronFiles();
  ASSERT_EQ(made.size(), 12u);
  for (const MegatronFile& file : made) {
    SCOPED_TRACE(file.prefix);
    const auto dataset = IndexedDataset::Open(files_, file.prefix);
    ASSERT_TRUE(dataset.ok()) << ToString(dataset.status());
    EXPECT_EQ(static_cast<int>(dataset->token_type()), file.dtype);
    ASSERT_EQ(dataset->documents(), std::ssize(file.documents));
    for (int64_t d = 0; d < dataset->documents(); ++d) {
      const auto& sequences = file.documents[static_cast<size_t>(d)];
      const int64_t first = dataset->DocumentBegin(d);
      ASSERT_EQ(dataset->DocumentBegin(d + 1) - first, std::ssize(sequences));
      for (int64_t s = 0; s < std::ssize(sequences); ++s) {
        const int64_t begin = dataset->SequenceBegin(first + s);
        std::vector<int32_t> tokens(
            static_cast<size_t>(dataset->SequenceBegin(first + s + 1) - begin));
        ASSERT_TRUE(dataset->Read(begin, 1 << 20, tokens).ok());
        EXPECT_EQ(tokens, sequences[static_cast<size_t>(s)]);
      }
    }
  }
}

TEST_F(IndexedDatasetTest, WritesTheBytesThatMegatronWrites) {
  for (const MegatronFile& file : MegatronFiles()) {
    if (file.prefix.find("/text_") == std::string::npos) continue;
    auto writer = IndexedDatasetWriter::Create(
        files_, {.prefix = prefix(), .type = static_cast<TokenType>(file.dtype)});
    ASSERT_TRUE(writer.ok());
    for (const auto& document : file.documents) {
      ASSERT_TRUE((*writer)->Append(document.at(0)).ok());
      ASSERT_TRUE((*writer)->EndDocument().ok());
    }
    ASSERT_TRUE((*writer)->Finish().ok());
    for (const char* suffix : {".idx", ".bin"}) {
      EXPECT_EQ(ReadBack(suffix),
                *ReadFile(files_, file.prefix + suffix, 1 << 20, SymbolicLinks::kRefuse));
    }
  }
}

TEST_F(IndexedDatasetTest, ATokenIsAWholeNumberWhateverItsType) {
  for (const double value : {0.5, -1.0, 1e300, std::nan("")}) {
    std::string index = GoldenIndex();
    index[17] = 6;  // float64
    const int64_t second_pointer = 24;
    std::memcpy(index.data() + 50, &second_pointer, sizeof second_pointer);
    Write(index, Bytes().Add(1.0).Add(2.0).Add(value).Add(3.0).text());
    const auto dataset = IndexedDataset::Open(files_, prefix());
    ASSERT_TRUE(dataset.ok()) << ToString(dataset.status());
    std::vector<int32_t> tokens(4);
    EXPECT_THAT(std::string(Message(dataset->Read(0, 1 << 20, tokens))),
                HasSubstr("at position 2 is not in [0, vocab_size"));
  }
}

TEST_F(IndexedDatasetTest, NeverReadsOutsideForAnyRandomlyDamagedIndex) {
  std::mt19937_64 random(7);
  int opened = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string index = GoldenIndex();
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
      index[random() % index.size()] ^= static_cast<char>(1 << random() % 8);
    }
    if (random() % 4 == 0) index.resize(random() % index.size());
    TROUPE_CHECK_OK(
        (*files_.Create(prefix() + ".idx", CreateMode::kTruncate))->Append(AsBytes(index)));
    TROUPE_CHECK_OK(
        (*files_.Create(prefix() + ".bin", CreateMode::kTruncate))->Append(AsBytes(GoldenData())));
    const auto dataset = IndexedDataset::Open(files_, prefix());
    if (!dataset.ok()) continue;
    ++opened;
    std::vector<int32_t> tokens(static_cast<size_t>(dataset->tokens()));
    dataset->Read(0, 1 << 30, tokens).IgnoreError();
    EXPECT_LE(dataset->tokens(), 8);
  }
  EXPECT_LT(opened, 500);  // most damage is detected; the rest changes lengths consistently
}

TEST_F(IndexedDatasetTest, NamesFileValueAndPositionOfATokenOutsideTheVocabulary) {
  Write(GoldenIndex(), GoldenData());
  const auto dataset = IndexedDataset::Open(files_, prefix());
  ASSERT_TRUE(dataset.ok());
  int32_t tokens[3];
  const Status status = dataset->Read(1, 259, tokens);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr(prefix() + ".bin: token 300 at position 3 is not in [0, vocab_size 259)"));
}

TEST_F(IndexedDatasetTest, RoundTripsRandomDocumentsOfEveryType) {
  std::mt19937_64 random(3);
  for (const TokenType type : {TokenType::kUint8, TokenType::kInt8, TokenType::kInt16,
                               TokenType::kInt32, TokenType::kInt64, TokenType::kUint16}) {
    auto writer = IndexedDatasetWriter::Create(
        files_, {.prefix = prefix(), .type = type, .sequence_tokens_max = 10});
    ASSERT_TRUE(writer.ok());
    std::vector<int32_t> all;
    const int documents = 1 + static_cast<int>(random() % 8);
    for (int d = 0; d < documents; ++d) {
      std::vector<int32_t> document(random() % 35);
      for (int32_t& token : document) token = static_cast<int32_t>(random() % 128);
      all.insert(all.end(), document.begin(), document.end());
      ASSERT_TRUE((*writer)->Append(document).ok());
      ASSERT_TRUE((*writer)->EndDocument().ok());
    }
    ASSERT_TRUE((*writer)->Finish().ok());
    const auto dataset = IndexedDataset::Open(files_, prefix());
    ASSERT_TRUE(dataset.ok()) << ToString(dataset.status());
    EXPECT_EQ(dataset->token_type(), type);
    EXPECT_EQ(dataset->documents(), documents);
    std::vector<int32_t> read(all.size());
    ASSERT_EQ(dataset->tokens(), static_cast<int64_t>(all.size()));
    ASSERT_TRUE(dataset->Read(0, 128, read).ok());
    EXPECT_EQ(read, all);
    for (int64_t s = 0; s < dataset->sequences(); ++s) {
      EXPECT_LE(dataset->SequenceBegin(s + 1) - dataset->SequenceBegin(s), 10);
    }
  }
}

TEST_F(IndexedDatasetTest, TheWriterRefusesATokenItsTypeCannotHold) {
  auto writer = IndexedDatasetWriter::Create(files_, {.prefix = prefix()});
  EXPECT_EQ((*writer)->Append(std::array{65536}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ((*writer)->Append(std::array{-1}).code(), StatusCode::kInvalidArgument);
}

TEST_F(IndexedDatasetTest, AFailedWriteLeavesAnOlderDatasetOrNoneButNeverAMixture) {
  for (const auto& [operation, call] : {std::pair{FileOperation::kWrite, 1},
                                        {FileOperation::kWrite, 2},
                                        {FileOperation::kSync, 1},
                                        {FileOperation::kWrite, 3},
                                        {FileOperation::kSync, 2},
                                        {FileOperation::kSync, 3},
                                        {FileOperation::kRemove, 1},
                                        {FileOperation::kSyncDirectory, 1},
                                        {FileOperation::kRename, 1},
                                        {FileOperation::kRename, 2},
                                        {FileOperation::kRename, 3}}) {
    Write(GoldenIndex(), GoldenData());
    ASSERT_TRUE(WriteFileDurably(files_, DescriptionPath(prefix()), AsBytes("older")).ok());
    FaultyFileSystem faulty(files_);
    faulty.Add({.operation = operation, .first_call = call, .error_number = ENOSPC});
    {
      auto writer = IndexedDatasetWriter::Create(faulty, {.prefix = prefix()});
      ASSERT_TRUE(writer.ok());
      ASSERT_TRUE((*writer)->Append(std::array{1, 2, 3, 4}).ok());
      ASSERT_TRUE((*writer)->EndDocument().ok());
      EXPECT_EQ((*writer)->Finish("newer").code(), StatusCode::kResourceExhausted);
    }
    for (const char* ending : {".bin.tmp", ".idx.tmp", ".troupe.json.tmp"})
      EXPECT_FALSE(std::filesystem::exists(prefix() + ending)) << ending;
    const auto dataset = IndexedDataset::Open(files_, prefix());
    // The older index is gone before the first rename.
    const bool is_older =
        operation != FileOperation::kRename && operation != FileOperation::kSyncDirectory;
    EXPECT_EQ(dataset.ok(), is_older) << call;
    if (dataset.ok()) {
      EXPECT_EQ(dataset->sequences(), 2);
      EXPECT_EQ(ReadDescription(files_, prefix()).value_or("").value_or(""), "older");
    } else {
      EXPECT_EQ(dataset.status().code(), StatusCode::kNotFound);
    }
  }
}

}  // namespace
}  // namespace troupe
