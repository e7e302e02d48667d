#include "data/data_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/temporary_directory.h"
#include "data/dataset_description.h"
#include "data/indexed_dataset_writer.h"
#include "data/test_files.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::span<const std::byte> BytesOf(const std::vector<char>& bytes) {
  return std::as_bytes(std::span(bytes));
}

class DataIdentityTest : public ::testing::Test {
 protected:
  // Writes documents of these lengths; token i of the file is `first` + i.
  std::string Write(const std::string& name, const std::vector<int>& lengths, int first = 0) {
    const std::string prefix = folder_.Child(name);
    auto writer = IndexedDatasetWriter::Create(files_, {.prefix = prefix});
    for (const int length : lengths) {
      std::vector<int32_t> tokens;
      for (int i = 0; i < length; ++i) tokens.push_back(first++);
      TROUPE_CHECK_OK((*writer)->Append(tokens));
      TROUPE_CHECK_OK((*writer)->EndDocument());
    }
    TROUPE_CHECK_OK((*writer)->Finish());
    return prefix;
  }
  v1::DataIdentity Identity() {
    const auto dataset = Dataset::Open(files_, options_);
    TROUPE_CHECK_OK(dataset.status());
    return IdentityOf(*dataset);
  }
  // The refusal of what the options name now, by a job that began with `before`.
  std::string Refusal(const v1::DataIdentity& before) {
    const v1::DataIdentity now = Identity();
    const Status status = CheckSameData({before, "the job began with"}, {now, "host h has"});
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
    return std::string(Message(status));
  }

  TemporaryDirectory folder_;
  PosixFileSystem files_;
  DatasetOptions options_ = {
      .train = folder_.Child("d"), .sequence_length = 8, .global_batch_size = 2, .vocab_size = 900};
};

TEST_F(DataIdentityTest, TheSameDataHaveTheSameIdentityAlsoAtAnotherPath) {
  Write("d", {30, 20});
  const v1::DataIdentity before = Identity();
  EXPECT_EQ(before.datasets(0).key(), "data.train");
  EXPECT_EQ(before.datasets(0).documents(), 2);
  EXPECT_EQ(before.datasets(0).tokens(), 50);
  EXPECT_EQ(before.datasets(0).files(1).bytes(), 100);
  options_.train = Write("e", {30, 20});
  EXPECT_TRUE(CheckSameData({before, ""}, {Identity(), ""}).ok());
}

TEST_F(DataIdentityTest, DataThatGrewShrankOrWereRebuiltDifferAndBothSidesAreNamed) {
  Write("d", {30, 20});
  const v1::DataIdentity before = Identity();
  Write("d", {30, 20, 10});
  EXPECT_THAT(Refusal(before),
              AllOf(StartsWith("data.train " + folder_.Child("d") + " is not the same data: "),
                    HasSubstr("the job began with 2 documents, 50 tokens, .idx of "),
                    HasSubstr("; host h has 3 documents, 60 tokens, .idx of ")));
  Write("d", {30});
  EXPECT_THAT(Refusal(before), HasSubstr("host h has 1 document, 30 tokens"));
  Write("d", {20, 30});
  EXPECT_THAT(Refusal(before), HasSubstr("host h has 2 documents, 50 tokens"))
      << "other documents of the same tokens";
  Write("d", {30, 20}, 1);
  EXPECT_THAT(Refusal(before), HasSubstr("host h has 2 documents, 50 tokens"))
      << "other tokens in the same documents";
  Write("d", {30, 20});
  EXPECT_TRUE(CheckSameData({before, ""}, {Identity(), ""}).ok());
}

TEST_F(DataIdentityTest, TheDescriptionCountsAndSoDoesItsAbsence) {
  const std::string prefix = Write("d", {30, 20});
  const auto describe = [&](const std::string& tokenizer) {
    TROUPE_CHECK_OK(WriteDescription(files_, prefix,
                                     {.tokenizer = tokenizer,
                                      .vocab_size = 900,
                                      .end_of_document = 1,
                                      .tokens = 50,
                                      .text_bytes = 70}));
  };
  const v1::DataIdentity bare = Identity();
  describe("/t/a.json");
  const v1::DataIdentity before = Identity();
  EXPECT_THAT(Refusal(bare), AllOf(HasSubstr(", no .troupe.json; host h has 2 documents"),
                                   HasSubstr(", .troupe.json of ")));
  describe("/t/b.json");
  EXPECT_THAT(Refusal(before), AllOf(HasSubstr("the job began with 2 documents, 50 tokens, .idx"),
                                     HasSubstr("host h has 2 documents, 50 tokens, .idx of ")))
      << "another tokenizer of the same tokens";
  TROUPE_CHECK_OK(files_.Remove(DescriptionPath(prefix)));
  EXPECT_THAT(Refusal(before), EndsWith(", no .troupe.json")) << "it was removed";
  describe("/t/a.json");
  EXPECT_TRUE(CheckSameData({before, ""}, {Identity(), ""}).ok());
}

TEST_F(DataIdentityTest, OneOfAnOlderVersionKnowsNoDescription) {
  const std::string prefix = Write("d", {30, 20});
  v1::DataIdentity older = Identity();
  older.mutable_datasets(0)->mutable_files()->RemoveLast();
  ASSERT_EQ(older.datasets(0).files_size(), 2);
  for (const bool is_described : {false, true}) {
    if (is_described) {
      TROUPE_CHECK_OK(WriteDescription(
          files_, prefix,
          {.tokenizer = "x", .vocab_size = 900, .end_of_document = 1, .tokens = 50}));
    }
    const v1::DataIdentity now = Identity();
    EXPECT_TRUE(CheckSameData({older, ""}, {now, ""}).ok());
    EXPECT_TRUE(CheckSameData({now, ""}, {older, ""}).ok());
  }
  Write("d", {20, 30});
  EXPECT_THAT(Refusal(older), HasSubstr("host h has 2 documents, 50 tokens"));
}

TEST_F(DataIdentityTest, EveryDataSetOfABlendAndTheSeparateOneForValidationCount) {
  options_.train.clear();
  options_.blend = {{Write("a", {40})}, {Write("b", {40})}};
  options_.validation = Write("v", {40});
  const v1::DataIdentity before = Identity();
  ASSERT_EQ(before.datasets_size(), 3);
  Write("v", {41});
  EXPECT_THAT(Refusal(before), StartsWith("data.validation " + folder_.Child("v")));
  Write("b", {41});
  EXPECT_THAT(Refusal(before), StartsWith("data.blend[1].path " + folder_.Child("b")));
  options_.validation.clear();
  EXPECT_EQ(Refusal(before), "the job began with 3 data sets, host h has 2");
}

TEST_F(DataIdentityTest, AFileOfLlmcHasNoIndexAndItsDocumentsAreNotCounted) {
  options_.train = folder_.Child("tokens.bin");
  std::vector<int32_t> header(256, 0);
  header[0] = 20240520;
  header[1] = 1;
  header[2] = 40;
  const auto write = [&](uint16_t token) {
    const std::vector<uint16_t> tokens(40, token);
    std::ofstream file(options_.train, std::ios::binary);
    file.write(reinterpret_cast<const char*>(header.data()), 1024);
    file.write(reinterpret_cast<const char*>(tokens.data()), 80);
  };
  write(7);
  const v1::DataIdentity before = Identity();
  EXPECT_FALSE(before.datasets(0).has_documents());
  ASSERT_EQ(before.datasets(0).files_size(), 2) << "with the description, which is absent";
  EXPECT_EQ(before.datasets(0).files(0).bytes(), 1104);
  write(8);
  EXPECT_THAT(Refusal(before), HasSubstr("the job began with 40 tokens, a file of 1104 bytes"));
}

TEST(SampledDigest, OfASmallFileIsThatOfAllBytes) {
  std::vector<char> bytes(3 * 4096, 'a');
  const std::string before = SampledDigest(BytesOf(bytes), 0, 3);
  EXPECT_THAT(before, StartsWith("xxh128:"));
  for (const size_t at : {size_t{0}, size_t{5000}, bytes.size() - 1}) {
    bytes[at] = 'b';
    EXPECT_NE(SampledDigest(BytesOf(bytes), 0, 3), before) << at;
    bytes[at] = 'a';
  }
  // The number that `xxh128sum` prints of no bytes.
  EXPECT_EQ(SampledDigest({}, 0, 2), "xxh128:99aa06d3014798d86001c324468d497f");
}

TEST(SampledDigest, OfALargeFileIsOfBlocksFromItsBeginToItsEnd) {
  std::vector<char> bytes(40 * 4096 + 5, 'a');
  const std::string before = SampledDigest(BytesOf(bytes), 0, 4);
  EXPECT_THAT(before, StartsWith("xxh128/4:"));
  int seen = 0;
  for (size_t at = 0; at < bytes.size(); at += 64) {
    bytes[at] = 'b';
    seen += SampledDigest(BytesOf(bytes), 0, 4) != before;
    bytes[at] = 'a';
  }
  EXPECT_EQ(seen, 4 * 4096 / 64) << "four blocks, none twice";
  bytes.back() = 'b';
  EXPECT_NE(SampledDigest(BytesOf(bytes), 0, 4), before);
}

TEST(SampledDigest, AnIndexIsDigestedWholeUpToItsLimit) {
  std::vector<char> bytes(100 * 4096, 'a');
  const auto of = [&](int64_t whole_bytes_max) {
    return SampledDigest(BytesOf(bytes), whole_bytes_max, 2);
  };
  const std::string whole = of(std::ssize(bytes)), sample = of(std::ssize(bytes) - 1);
  EXPECT_THAT(sample, StartsWith("xxh128/2:"));
  bytes[50 * 4096] = 'b';
  EXPECT_NE(of(std::ssize(bytes)), whole);
  EXPECT_EQ(of(std::ssize(bytes) - 1), sample);
}

}  // namespace
}  // namespace troupe
