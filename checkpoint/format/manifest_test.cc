#include "checkpoint/format/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"
#include "checkpoint/format/digest.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

void AddTensor(v1::ShardFile& shard, std::string name, Extents global, Extents offset,
               Extents shape) {
  v1::TensorSlice& tensor = *shard.add_tensors();
  tensor.set_name(std::move(name));
  tensor.set_dtype("F32");
  tensor.mutable_global_shape()->Assign(global.begin(), global.end());
  tensor.mutable_global_offset()->Assign(offset.begin(), offset.end());
  tensor.mutable_shape()->Assign(shape.begin(), shape.end());
  const int index = shard.tensors_size() - 1;
  const int64_t begin = index == 0 ? 0 : shard.tensors(index - 1).data_end();
  tensor.set_data_begin(begin);
  tensor.set_data_end(begin + *DenseBytes(shape, "F32"));
}

// Two shards: a matrix split by columns, and a vector in the first shard.
v1::CheckpointManifest Good() {
  v1::CheckpointManifest manifest;
  manifest.set_format_version(kManifestFormatVersion);
  manifest.set_job("jobs/x");
  manifest.set_attempt(3);
  manifest.mutable_state()->set_step(50);
  manifest.mutable_state()->set_seed(~uint64_t{0});
  for (int s = 0; s < 2; ++s) {
    v1::ShardFile& shard = *manifest.add_shards();
    shard.set_name(fmt::format("rank-{:05}.safetensors", s));
    shard.set_rank(s);
    shard.set_bytes(8192);
    shard.set_digest("xxh128:" + std::string(32, 'a'));
    shard.add_block_crc32c(7);
    AddTensor(shard, "w", {4, 6}, {0, 3 * s}, {4, 3});
  }
  AddTensor(*manifest.mutable_shards(0), "v", {5}, {0}, {5});
  AddTensor(*manifest.mutable_shards(1), "scalar", {}, {}, {});
  AddTensor(*manifest.mutable_shards(1), "empty", {0, 3}, {0, 0}, {0, 3});
  return manifest;
}

TEST(ValidateManifest, RefusesWhatNoCheckpointMayHold) {
  ASSERT_TRUE(ValidateManifest(Good()).ok()) << ToString(ValidateManifest(Good()));
  using Change = std::function<void(v1::CheckpointManifest&)>;
  const auto shard = [](auto change) -> Change {
    return [change](v1::CheckpointManifest& m) { change(*m.mutable_shards(0)); };
  };
  const auto tensor = [](auto change) -> Change {
    return
        [change](v1::CheckpointManifest& m) { change(*m.mutable_shards(0)->mutable_tensors(0)); };
  };
  struct Case {
    Change change;
    std::string message;
  };
  const Case cases[] = {
      {[](auto& m) { m.set_format_version(1); }, "format_version 1 is not 2"},
      {[](auto& m) { m.clear_shards(); }, "no shards"},
      {[](auto& m) { m.mutable_state()->set_step(-1); }, "state.step -1"},
      {[](auto& m) { m.mutable_shards(1)->set_name(m.shards(0).name()); }, "appears twice"},
      {shard([](auto& s) { s.set_name(""); }), "not a plain file name"},
      {shard([](auto& s) { s.set_name(".."); }), "not a plain file name"},
      {shard([](auto& s) { s.set_name("../x"); }), "not a plain file name"},
      {shard([](auto& s) { s.set_name("/etc/passwd"); }), "not a plain file name"},
      {shard([](auto& s) { s.set_name("a/b"); }), "not a plain file name"},
      {shard([](auto& s) { s.set_name(std::string("a\0b", 3)); }), "not a plain file name"},
      {shard([](auto& s) { s.set_name("%2e%2e"); }), "not a plain file name"},
      {shard([](auto& s) { s.set_name("manifest.json"); }), "not a plain file name"},
      {shard([](auto& s) { s.set_name(std::string(256, 'a')); }), "not a plain file name"},
      {shard([](auto& s) { s.set_bytes(-1); }), "bytes -1 is below 8"},
      {shard([](auto& s) { s.set_bytes(INT64_MAX); }), "1 block checksums"},
      {shard([](auto& s) { s.clear_block_crc32c(); }),
       "0 block checksums for 8192 bytes, must be 1"},
      {shard([](auto& s) { s.set_digest("md5:00"); }), "digest \"md5:00\""},
      {shard([](auto& s) { s.set_rank(-1); }), "rank -1"},
      {tensor([](auto& t) { t.set_name(""); }), "tensor name has 0 characters"},
      {tensor([](auto& t) { t.set_name("a b"); }), "not printable ASCII"},
      {tensor([](auto& t) { t.set_dtype("F99"); }), "dtype \"F99\""},
      {tensor([](auto& t) { t.set_shape(1, -1); }), "extent below 0"},
      {tensor([](auto& t) { t.set_global_offset(0, -1); }), "is not within global_shape"},
      {tensor([](auto& t) { t.set_global_offset(0, INT64_MAX); }), "is not within global_shape"},
      {tensor([](auto& t) { t.set_shape(0, INT64_MAX); }), "2^63 - 1 elements"},
      {tensor([](auto& t) { t.set_global_shape(0, INT64_MAX); }), "2^63 - 1 elements"},
      {tensor([](auto& t) { t.add_shape(1); }), "does not have the 2 dims"},
      {tensor([](auto& t) { t.set_data_end(47); }), "data [0, 47)"},
      {tensor([](auto& t) {
         t.set_data_begin(INT64_MAX - 47);
         t.set_data_end(INT64_MAX);
       }),
       "exceeds the file's 8192 bytes"},
      {tensor([](auto& t) {
         t.set_data_begin(-48);
         t.set_data_end(0);
       }),
       "data [-48, 0)"},
      // Cases of wrong coverage.
      {[](auto& m) { m.mutable_shards(1)->mutable_tensors()->DeleteSubrange(0, 1); },
       "tensor w: its slices have 12 of its 24 elements"},
      {[](auto& m) { m.mutable_shards(1)->mutable_tensors(0)->set_global_offset(1, 2); },
       "tensor w: slice [0, 2] + [4, 3] in rank-00001.safetensors overlaps [0, 0] + [4, 3]"},
      {[](auto& m) {
         AddTensor(*m.mutable_shards(0), "w", {4, 6}, {0, 0}, {1, 1});
       },
       "more than its 24 elements"},
      {[](auto& m) {
         AddTensor(*m.mutable_shards(0), "w", {4, 6}, {0, 0}, {0, 1});
       },
       "empty slice"},
      {[](auto& m) { AddTensor(*m.mutable_shards(0), "scalar", {}, {}, {}); },
       "more than its 1 elements"},
      {[](auto& m) {
         AddTensor(*m.mutable_shards(0), "empty", {0, 3}, {0, 0}, {0, 3});
       },
       "is empty but has 2 slices"},
      {[](auto& m) { m.mutable_shards(1)->mutable_tensors(0)->set_dtype("I32"); },
       "of I32 in rank-00001.safetensors differs"},
      {[](auto& m) { m.mutable_shards(1)->mutable_tensors(0)->set_global_shape(1, 7); },
       "differs from"},
  };
  for (const Case& c : cases) {
    v1::CheckpointManifest manifest = Good();
    c.change(manifest);
    const Status status = ValidateManifest(manifest);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(c.message));
  }
}

TEST(ValidateManifest, SeesEveryHoleAndOverlapInRandomGrids) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 100; ++trial) {
    const int64_t rows = 1 + static_cast<int64_t>(random() % 4);
    const int64_t columns = 1 + static_cast<int64_t>(random() % 4);
    v1::CheckpointManifest manifest = Good();
    v1::ShardFile& shard = *manifest.mutable_shards(0);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        AddTensor(shard, "grid", {3 * rows, 2 * columns}, {3 * r, 2 * c}, {3, 2});
      }
    }
    ASSERT_TRUE(ValidateManifest(manifest).ok()) << ToString(ValidateManifest(manifest));
    if (rows * columns == 1) continue;
    // One cell replaces another: the number of elements is still right.
    const int cells = static_cast<int>(rows * columns);
    const int first = shard.tensors_size() - cells;
    const int a = first + static_cast<int>(random() % static_cast<uint64_t>(cells));
    const int b = first + (a - first + 1) % cells;
    *shard.mutable_tensors(a)->mutable_global_offset() = shard.tensors(b).global_offset();
    EXPECT_THAT(std::string(Message(ValidateManifest(manifest))), HasSubstr("overlaps"));
  }
}

TEST(Manifest, RoundTripsThroughJsonWithFieldNamesKept) {
  const auto json = ManifestToJson(Good());
  ASSERT_TRUE(json.ok());
  EXPECT_THAT(*json, HasSubstr("\"format_version\": 2"));
  EXPECT_THAT(*json, HasSubstr("\"block_crc32c\""));
  const auto back = ManifestFromJson(*json);
  ASSERT_TRUE(back.ok()) << ToString(back.status());
  EXPECT_EQ(back->SerializeAsString(), Good().SerializeAsString());
  EXPECT_EQ(back->state().seed(), ~uint64_t{0});
}

TEST(Manifest, RefusesTextThatIsNone) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"),
        std::string("{\"format_version\": \"x\"}"), std::string("{\"unknown\": 1}"),
        std::string(200000, '['), std::string("{}")}) {
    EXPECT_EQ(ManifestFromJson(text).status().code(), StatusCode::kInvalidArgument)
        << text.substr(0, 40);
  }
}

class ManifestFile : public ::testing::Test {
 protected:
  TemporaryDirectory folder_;
  PosixFileSystem files_;
};

TEST_F(ManifestFile, IsWrittenOnceAndCheckedAgainstItsDigest) {
  const auto written = WriteManifest(files_, folder_.path(), Good());
  ASSERT_TRUE(written.ok()) << ToString(written.status());
  EXPECT_TRUE(IsSha256(written->digest));
  EXPECT_GT(written->bytes, 2 * 8192);
  EXPECT_TRUE(ReadManifest(files_, folder_.path(), written->digest).ok());
  EXPECT_TRUE(ReadManifest(files_, folder_.path(), "").ok());
  EXPECT_EQ(ReadManifest(files_, folder_.path(), "sha256:" + std::string(64, '0')).status().code(),
            StatusCode::kDataLoss);
  // A repeated write, as after a lost answer, succeeds; a different manifest does not overwrite it.
  const auto again = WriteManifest(files_, folder_.path(), Good());
  ASSERT_TRUE(again.ok()) << ToString(again.status());
  EXPECT_EQ(again->digest, written->digest);
  EXPECT_EQ(again->bytes, written->bytes);
  v1::CheckpointManifest other = Good();
  other.set_job("another");
  EXPECT_EQ(WriteManifest(files_, folder_.path(), other).status().code(),
            StatusCode::kAlreadyExists);
}

TEST_F(ManifestFile, NoManifestIsThereWhereAnyStepFailsBeforeTheRename) {
  for (const FileOperation operation :
       {FileOperation::kCreate, FileOperation::kWrite, FileOperation::kSync, FileOperation::kClose,
        FileOperation::kRename}) {
    TemporaryDirectory folder;
    FaultyFileSystem faulty(files_);
    faulty.Add({.operation = operation, .error_number = EIO});
    EXPECT_FALSE(WriteManifest(faulty, folder.path(), Good()).ok());
    EXPECT_EQ(ReadManifest(files_, folder.path(), "").status().code(), StatusCode::kNotFound);
    EXPECT_LE(faulty.Calls(FileOperation::kSync, ""), 1);
  }
}

TEST_F(ManifestFile, AnInvalidOneIsNotWritten) {
  v1::CheckpointManifest bad = Good();
  bad.mutable_shards(0)->set_name("../x");
  EXPECT_EQ(WriteManifest(files_, folder_.path(), bad).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(files_.List(folder_.path())->empty());
}

}  // namespace
}  // namespace troupe
