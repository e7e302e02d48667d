#include "worker/rank/rank_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/durable_write.h"
#include "base/failure_cause.h"
#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"
#include "data/indexed_dataset_writer.h"
#include "interop/testing.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RankDataTest : public ::testing::Test {
 protected:
  RankDataTest() {
    Write(1);
    v1::JobSpec& spec = *start_.mutable_spec();
    spec.mutable_data()->set_train(prefix_);
    spec.mutable_training()->set_sequence_length(8);
    spec.mutable_training()->set_global_batch_size(2);
    spec.mutable_model()->set_vocab_size(99);
    for (const char* host : {"a", "b"}) start_.mutable_plan()->add_ranks()->set_host(host);
  }

  // Writes one document of 40 tokens, each of them `token`.
  void Write(int32_t token) {
    auto writer = IndexedDatasetWriter::Create(files_, {.prefix = prefix_});
    TROUPE_CHECK_OK((*writer)->Append(std::vector<int32_t>(40, token)));
    TROUPE_CHECK_OK((*writer)->EndDocument());
    TROUPE_CHECK_OK((*writer)->Finish());
  }
  v1::DataIdentity Identity() { return OpenRankData(files_, start_, 0)->identity; }

  TemporaryDirectory folder_;
  const std::string prefix_ = folder_.Child("d");
  PosixFileSystem files_;
  v1::StartRanks start_;
};

TEST_F(RankDataTest, DataThatAreNotThereAreStorageThatMayComeBackAndTheHostIsNamed) {
  struct Case {
    int error_number;
    StatusCode code;
  };
  for (const Case& is :
       {Case{ENOENT, StatusCode::kFailedPrecondition},
        Case{EACCES, StatusCode::kFailedPrecondition}, Case{EIO, StatusCode::kUnavailable},
        Case{ESTALE, StatusCode::kUnavailable}}) {
    FaultyFileSystem faulty(files_);
    faulty.Add({.operation = FileOperation::kMap,
                .path_contains = "d.bin",
                .error_number = is.error_number});
    const Status status = OpenRankData(faulty, start_, 1).status();
    EXPECT_EQ(status.code(), is.code) << status;
    EXPECT_EQ(AttachedCause(status), "STORAGE") << status;
    EXPECT_THAT(
        std::string(Message(status)),
        AllOf(StartsWith("host b: data.train cannot be read: "), HasSubstr(prefix_ + ".bin: ")));
    EXPECT_TRUE(OpenRankData(faulty, start_, 1).ok()) << "they are back";
  }
}

TEST_F(RankDataTest, FilesThatAreNoDataForTheJobAreAnErrorThatIsFinal) {
  ASSERT_TRUE(WriteFileDurably(files_, prefix_ + ".bin", AsBytes("short")).ok());
  const Status status = OpenRankData(files_, start_, 0).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(AttachedCause(status), "DATA");
  EXPECT_THAT(std::string(Message(status)), StartsWith("host a: " + prefix_ + ".bin: size 5"));
}

TEST_F(RankDataTest, DataOtherThanThoseThatTheJobBeganWithAreRefusedOnEveryRank) {
  *start_.mutable_data() = Identity();
  EXPECT_TRUE(OpenRankData(files_, start_, 1).ok());
  Write(2);
  const Status status = OpenRankData(files_, start_, 1).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(AttachedCause(status), "DATA");
  EXPECT_THAT(std::string(Message(status)),
              AllOf(HasSubstr("the job began with 1 document, 40 tokens"),
                    HasSubstr("; host b has 1 document, 40 tokens"),
                    EndsWith("a new job with checkpoint.initial_load")));
  Write(1);
  EXPECT_TRUE(OpenRankData(files_, start_, 1).ok()) << "the former data are back";
}

TEST_F(RankDataTest, ABaseIsIdentifiedWaitedForAndComparedByItsOwnKey) {
  const std::string base = folder_.Child("base");
  v1::DataIdentity identity;
  const auto identify = [&] {
    identity.clear_base();
    return IdentifyBase({files_, files_}, start_, 1, &identity);
  };
  start_.mutable_spec()->mutable_model()->set_from(base);
  EXPECT_TRUE(identify().ok() && !identity.has_base()) << "all parameters are trained";
  start_.mutable_plan()->set_trained_parameters(1);
  Status status = identify();
  EXPECT_EQ(AttachedCause(status), "STORAGE") << status;
  EXPECT_THAT(std::string(Message(status)), StartsWith("host b: model.from"));
  WriteSmallLlama(base, /*tied=*/false, NumberFormat::kFloat32);
  ASSERT_TRUE(identify().ok());
  EXPECT_EQ(identity.base().path(), base);
  *start_.mutable_data() = identity;
  EXPECT_TRUE(identify().ok());
  v1::CheckpointManifest manifest;
  EXPECT_TRUE(CheckBaseOf(manifest, identity, start_, 1).ok()) << "it has the whole model";
  *manifest.mutable_base() = identity.base();
  EXPECT_TRUE(CheckBaseOf(manifest, identity, start_, 1).ok());

  std::filesystem::remove_all(base);
  WriteSmallLlama(base, /*tied=*/true, NumberFormat::kFloat32);
  status = identify();
  EXPECT_EQ(AttachedCause(status), "DATA") << status;
  EXPECT_THAT(std::string(Message(status)),
              AllOf(HasSubstr("is not the same model: the job began with"),
                    EndsWith("put the former files back and resume the job")));
  // After a rebuild of the catalog only the checkpoint knows its base.
  start_.clear_data();
  ASSERT_TRUE(identify().ok());
  EXPECT_EQ(AttachedCause(CheckBaseOf(manifest, identity, start_, 1)), "DATA");
  std::filesystem::remove(base + "/model.safetensors");
  status = identify();
  EXPECT_EQ(AttachedCause(status), "DATA") << status;
  EXPECT_THAT(std::string(Message(status)), StartsWith("host b: model.from: "));
}

TEST_F(RankDataTest, AtTheFirstStartTheOtherRanksCompareTheirDataWithThoseOfRank0) {
  std::vector<v1::RankAddress> addresses(2);
  EXPECT_TRUE(CheckDataOfRank0(Identity(), addresses, start_, 1).ok()) << "rank 0 is older";
  *addresses[0].mutable_data() = Identity();
  EXPECT_TRUE(CheckDataOfRank0(Identity(), addresses, start_, 1).ok());
  Write(2);
  const Status status = CheckDataOfRank0(Identity(), addresses, start_, 1);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(AttachedCause(status), "DATA");
  EXPECT_THAT(std::string(Message(status)),
              AllOf(HasSubstr("is not the same data: host a of rank 0 has 1 document"),
                    HasSubstr("; host b of rank 1 has 1 document"),
                    EndsWith("the hosts of a job must have the same data")));
}

}  // namespace
}  // namespace troupe
