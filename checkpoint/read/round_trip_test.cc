// Writes shards with the ranks of one layout and reads them with those of another, with damage,
// faults and failpoints in between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <random>

#include "base/check.h"
#include "base/durable_write.h"
#include "base/failpoint.h"
#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/digest.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/read/shard_reader.h"
#include "checkpoint/read/verify.h"
#include "checkpoint/write/ownership.h"
#include "checkpoint/write/shard_writer.h"

namespace troupe {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

struct Layout {
  int64_t data = 1, tensor = 1, pipe = 1;
};

// Small tensors with every kind of split: rows, columns, uneven rows, replicated, scalar, two
// stages.
std::vector<std::vector<GlobalSlice>> SlicesOf(const Layout& layout) {
  std::vector<std::vector<GlobalSlice>> ranks;
  for (int64_t p = 0; p < layout.pipe; ++p) {
    for (int64_t d = 0; d < layout.data; ++d) {
      for (int64_t t = 0; t < layout.tensor; ++t) {
        std::vector<GlobalSlice>& slices = ranks.emplace_back();
        const auto begin = [&](int64_t n) { return n * t / layout.tensor; };
        const auto size = [&](int64_t n) { return n * (t + 1) / layout.tensor - begin(n); };
        const auto add = [&](std::string name, std::string dtype, Extents global, Box box) {
          slices.push_back({std::move(name), std::move(dtype), std::move(global), std::move(box)});
        };
        if (p == 0 || p == layout.pipe - 1) {
          add("embed", "F32", {59, 8}, {{begin(59), 0}, {size(59), 8}});
        }
        for (int64_t layer = 0; layer < 4; ++layer) {
          if (layer * layout.pipe / 4 != p) continue;
          for (const char* prefix : {"", "exp_avg."}) {
            const std::string name = fmt::format("{}layers.{}.", prefix, layer);
            add(name + "q", "F32", {24, 8}, {{begin(24), 0}, {size(24), 8}});
            add(name + "o", "BF16", {8, 24}, {{0, begin(24)}, {8, size(24)}});
            add(name + "norm", "F32", {8}, {{0}, {8}});
          }
        }
        if (p == 0) add("temperature", "F64", {}, {{}, {}});
      }
    }
  }
  return ranks;
}

// Fills a slice. The value of a global element is a function of its name, its index and the byte
// within it.
void Fill(const GlobalSlice& slice, std::span<std::byte> data) {
  const size_t item = static_cast<size_t>(*DtypeBits(slice.dtype) / 8);
  const int64_t elements = *Elements(slice.box.shape);
  for (int64_t i = 0; i < elements; ++i) {
    int64_t left = i, index = 0, stride = 1;
    for (size_t d = slice.global_shape.size(); d-- > 0;) {
      index += (slice.box.offset[d] + left % slice.box.shape[d]) * stride;
      left /= slice.box.shape[d];
      stride *= slice.global_shape[d];
    }
    const size_t value = std::hash<std::string>()(slice.name) * 31 + static_cast<size_t>(index);
    for (size_t b = 0; b < item; ++b) {
      data[static_cast<size_t>(i) * item + b] =
          static_cast<std::byte>((value * 2654435761u) >> (8 * b));
    }
  }
}

std::vector<std::byte> DataOf(const GlobalSlice& slice) {
  std::vector<std::byte> data(static_cast<size_t>(*DenseBytes(slice.box.shape, slice.dtype)));
  Fill(slice, data);
  return data;
}

StatusOr<v1::ShardFile> WriteRank(FileSystem& files, const std::string& directory, int rank,
                                  const std::vector<std::vector<GlobalSlice>>& ranks) {
  std::vector<std::vector<std::byte>> data;
  std::vector<ShardTensor> tensors;
  const auto owned = AssignOwners(ranks, 32);
  for (const OwnedRows& rows : owned[static_cast<size_t>(rank)]) {
    const GlobalSlice& whole = ranks[static_cast<size_t>(rank)][rows.slice];
    const GlobalSlice part = RowsOf(whole, rows);
    data.push_back(DataOf(whole));
    const auto bytes = std::span<const std::byte>(data.back());
    tensors.push_back(
        {part, bytes.subspan(static_cast<size_t>(ByteOffsetOf(whole, rows)),
                             static_cast<size_t>(*DenseBytes(part.box.shape, part.dtype)))});
  }
  return WriteShard(files, directory, rank, tensors);
}

// Writes a committed checkpoint of `layout` and returns the digest of its manifest.
std::string WriteCheckpoint(FileSystem& files, const std::string& directory, const Layout& layout) {
  TROUPE_CHECK_OK(MakeAttemptDirectory(files, directory));
  const auto ranks = SlicesOf(layout);
  v1::CheckpointManifest manifest;
  manifest.set_format_version(kManifestFormatVersion);
  manifest.mutable_state()->set_step(50);
  for (size_t r = 0; r < ranks.size(); ++r) {
    auto shard = WriteRank(files, directory, static_cast<int>(r), ranks);
    TROUPE_CHECK_OK(shard.status());
    *manifest.add_shards() = *std::move(shard);
  }
  const auto written = WriteManifest(files, directory, manifest);
  TROUPE_CHECK_OK(written.status());
  return written->digest;
}

// Loads the slices of every rank of `layout`, compares them and returns the first error.
Status LoadAll(FileSystem& files, const std::string& directory, const std::string& digest,
               const Layout& layout) {
  TROUPE_ASSIGN_OR_RETURN(const auto manifest, ReadManifest(files, directory, digest));
  for (const auto& slices : SlicesOf(layout)) {
    std::vector<std::vector<std::byte>> data;
    std::vector<LoadTarget> targets;
    for (const GlobalSlice& slice : slices) {
      data.emplace_back(static_cast<size_t>(*DenseBytes(slice.box.shape, slice.dtype)));
      targets.push_back({slice, data.back()});
    }
    TROUPE_RETURN_IF_ERROR(LoadSlices(files, directory, manifest, targets));
    for (size_t i = 0; i < slices.size(); ++i) {
      if (data[i] != DataOf(slices[i])) return Internal("{} differs", slices[i].name);
    }
  }
  return OkStatus();
}

class RoundTrip : public ::testing::Test {
 protected:
  ~RoundTrip() override { TROUPE_CHECK_OK(ArmFailpoints("")); }

  TemporaryDirectory folder_;
  PosixFileSystem files_;
  const std::string directory_ = folder_.Child("x/" + AttemptName(50, 1, 1, 1));
};

TEST_F(RoundTrip, EveryLayoutReadsWhatEveryLayoutWrote) {
  const Layout layouts[] = {{1, 1, 1}, {4, 1, 1}, {1, 4, 1}, {1, 1, 4}, {2, 3, 2}, {3, 2, 4}};
  for (const Layout& from : layouts) {
    const std::string directory = folder_.Child(
        fmt::format("{}-{}-{}/{}", from.data, from.tensor, from.pipe, AttemptName(50, 1, 1, 1)));
    const std::string digest = WriteCheckpoint(files_, directory, from);
    EXPECT_TRUE(VerifyCheckpoint(files_, directory, digest).ToStatus().ok());
    for (const Layout& to : layouts) {
      const Status status = LoadAll(files_, directory, digest, to);
      EXPECT_TRUE(status.ok()) << ToString(status);
    }
  }
}

TEST_F(RoundTrip, AnAttemptOfTheSameNumberByAnotherCatalogLeavesACommitAlone) {
  const std::string digest = WriteCheckpoint(files_, directory_, {.data = 2});
  const std::string other = folder_.Child("x/" + AttemptName(50, 1, 1, 2));
  const std::string other_digest = WriteCheckpoint(files_, other, {.tensor = 2});
  EXPECT_TRUE(VerifyCheckpoint(files_, other, other_digest).ToStatus().ok());
  TROUPE_CHECK_OK(DeleteAttempt(files_, other));
  EXPECT_TRUE(VerifyCheckpoint(files_, directory_, digest).ToStatus().ok());
}

TEST_F(RoundTrip, AFileIsSafetensorsWithSlicesInItsMetadataAndDataAtAMultipleOf4096) {
  WriteCheckpoint(files_, directory_, {.tensor = 2});
  const auto file = files_.Open(JoinPath(directory_, ShardFileName(1)), SymbolicLinks::kRefuse);
  ASSERT_TRUE(file.ok());
  const auto header = ReadSafetensorsHeader(**file);
  ASSERT_TRUE(header.ok()) << ToString(header.status());
  EXPECT_EQ(header->buffer_offset % 4096, 0);
  EXPECT_EQ(header->metadata.at("layers.0.q"),
            R"({"name":"layers.0.q","global_shape":[24,8],"global_offset":[12,0]})");
}

TEST_F(RoundTrip, FilesLargerThanABlockAreVerifiedBlockByBlock) {
  const GlobalSlice large{"large", "F32", {1500, 1000}, {{0, 0}, {1500, 1000}}};  // 6 MB
  const GlobalSlice small{"small", "F32", {10}, {{0}, {10}}};
  const std::vector<std::byte> large_data = DataOf(large), small_data = DataOf(small);
  TROUPE_CHECK_OK(MakeAttemptDirectory(files_, directory_));
  const auto shard = WriteShard(files_, directory_, 0, {{large, large_data}, {small, small_data}});
  ASSERT_TRUE(shard.ok());
  EXPECT_EQ(shard->block_crc32c_size(), 2);
  v1::CheckpointManifest manifest;
  manifest.set_format_version(kManifestFormatVersion);
  *manifest.add_shards() = *shard;
  ASSERT_TRUE(WriteManifest(files_, directory_, manifest).ok());

  // The second block is damaged: only data in the first block can still be loaded.
  const std::string path = JoinPath(directory_, ShardFileName(0));
  {
    auto text = *ReadFile(files_, path, 1 << 30, SymbolicLinks::kRefuse);
    text[5 << 20] ^= 1;
    TROUPE_CHECK_OK(WriteFileDurably(files_, path, AsBytes(text)));
  }
  GlobalSlice rows = large;
  rows.box = {{0, 10}, {900, 500}};
  std::vector<std::byte> data(std::size_t{900} * 500 * 4);
  EXPECT_TRUE(LoadSlices(files_, directory_, manifest, std::array{LoadTarget{rows, data}}).ok());
  EXPECT_EQ(data, DataOf(rows));
  rows.box = {{600, 10}, {900, 500}};
  const Status status =
      LoadSlices(files_, directory_, manifest, std::array{LoadTarget{rows, data}});
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("large"));
}

TEST_F(RoundTrip, EveryFlippedBitAndEveryCutIsDetected) {
  const Layout layout{.tensor = 2, .pipe = 2};
  const std::string digest = WriteCheckpoint(files_, directory_, layout);
  std::vector<std::string> paths;
  const std::vector<DirectoryEntry> entries = *files_.List(directory_);
  for (const DirectoryEntry& entry : entries) {
    paths.push_back(JoinPath(directory_, entry.name));
  }
  ASSERT_EQ(paths.size(), 5u);
  std::mt19937_64 random(17);
  for (int trial = 0; trial < 60; ++trial) {
    const std::string& path = paths[random() % paths.size()];
    const std::string good = *ReadFile(files_, path, 1 << 30, SymbolicLinks::kRefuse);
    std::string bad = good;
    if (trial % 4 == 0) {
      bad.resize(random() % bad.size());
    } else if (trial % 4 == 1) {
      bad += 'x';
    } else {
      bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
    }
    const auto write = [&](const std::string& text) {
      auto file = files_.Create(path, CreateMode::kTruncate);
      TROUPE_CHECK_OK((*file)->Append(AsBytes(text)));
    };
    write(bad);
    EXPECT_FALSE(VerifyCheckpoint(files_, directory_, digest).ToStatus().ok()) << path;
    EXPECT_FALSE(LoadAll(files_, directory_, digest, layout).ok()) << path;
    write(good);
  }
  EXPECT_TRUE(VerifyCheckpoint(files_, directory_, digest).ToStatus().ok());
}

TEST_F(RoundTrip, VerifyNamesFileAndTensor) {
  const std::string digest = WriteCheckpoint(files_, directory_, {.tensor = 2});
  const std::string name = ShardFileName(1);
  const std::string path = JoinPath(directory_, name);
  std::string text = *ReadFile(files_, path, 1 << 30, SymbolicLinks::kRefuse);
  text.back() ^= 1;
  TROUPE_CHECK_OK(WriteFileDurably(files_, path, AsBytes(text)));
  VerifyReport report = VerifyCheckpoint(files_, directory_, digest);
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_EQ(report.failures[0].file, name);
  EXPECT_THAT(report.failures[0].tensors, HasSubstr("layers.0.q"));
  EXPECT_THAT(std::string(Message(report.ToStatus())), HasSubstr(name));

  TROUPE_CHECK_OK(files_.Remove(path));
  report = VerifyCheckpoint(files_, directory_, digest);
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_THAT(report.failures[0].reason, HasSubstr("No such file"));
  EXPECT_EQ(LoadAll(files_, directory_, digest, {}).code(), StatusCode::kNotFound);
}

TEST_F(RoundTrip, VerifyDistinguishesDamageFromWhatCannotBeRead) {
  const std::string digest = WriteCheckpoint(files_, directory_, {.tensor = 2});
  struct Case {
    FileOperation operation;
    std::string file;
    int error_number;
    StatusCode code;
  };
  const Case cases[] = {
      {FileOperation::kOpen, "manifest", EIO, StatusCode::kUnavailable},
      {FileOperation::kOpen, "manifest", EACCES, StatusCode::kPermissionDenied},
      {FileOperation::kOpen, "manifest", ENOENT, StatusCode::kDataLoss},
      {FileOperation::kRead, "rank-00001", EIO, StatusCode::kUnavailable},
      {FileOperation::kOpen, "rank-00001", ESTALE, StatusCode::kUnavailable},
      {FileOperation::kOpen, "rank-00001", ENOENT, StatusCode::kDataLoss},
  };
  for (const Case& one : cases) {
    FaultyFileSystem faulty(files_);
    faulty.Add({.operation = one.operation,
                .path_contains = one.file,
                .calls = 1000,
                .error_number = one.error_number});
    const Status found = VerifyCheckpoint(faulty, directory_, digest).ToStatus();
    EXPECT_EQ(found.code(), one.code) << ToString(found);
    // If some of it is damaged, further read errors do not matter.
    TROUPE_CHECK_OK(files_.Rename(JoinPath(directory_, ShardFileName(0)), folder_.Child("away")));
    if (one.file != "manifest") {
      EXPECT_EQ(VerifyCheckpoint(faulty, directory_, digest).ToStatus().code(),
                StatusCode::kDataLoss);
    }
    // The folder may not be mounted.
    EXPECT_EQ(VerifyCheckpoint(files_, directory_ + "-elsewhere", digest).ToStatus().code(),
              StatusCode::kNotFound);
    TROUPE_CHECK_OK(files_.Rename(folder_.Child("away"), JoinPath(directory_, ShardFileName(0))));
  }
  const std::atomic<bool> stop = true;
  EXPECT_EQ(VerifyCheckpoint(files_, directory_, digest, &stop).ToStatus().code(),
            StatusCode::kCancelled);
}

TEST_F(RoundTrip, VerifyNamesEveryTensorOfADamagedBlock) {
  TROUPE_CHECK_OK(MakeAttemptDirectory(files_, directory_));
  std::vector<GlobalSlice> slices;
  for (int i = 0; i < 30; ++i) {
    slices.push_back({fmt::format("tensor.{}", i), "F32", {10}, {{0}, {10}}});
  }
  std::vector<std::vector<std::byte>> data;
  std::vector<ShardTensor> tensors;
  for (const GlobalSlice& slice : slices) data.push_back(DataOf(slice));
  for (size_t i = 0; i < slices.size(); ++i) tensors.push_back({slices[i], data[i]});
  v1::CheckpointManifest manifest;
  manifest.set_format_version(kManifestFormatVersion);
  const auto shard = WriteShard(files_, directory_, 0, tensors);
  ASSERT_TRUE(shard.ok());
  *manifest.add_shards() = *shard;
  ASSERT_TRUE(WriteManifest(files_, directory_, manifest).ok());
  const std::string path = JoinPath(directory_, ShardFileName(0));
  std::string text = *ReadFile(files_, path, 1 << 30, SymbolicLinks::kRefuse);
  text.back() ^= 1;
  TROUPE_CHECK_OK(WriteFileDurably(files_, path, AsBytes(text)));
  const VerifyReport report = VerifyCheckpoint(files_, directory_, "");
  ASSERT_EQ(report.failures.size(), 1u);
  for (const GlobalSlice& slice : slices) {
    EXPECT_THAT(report.failures[0].tensors, HasSubstr(slice.name));
  }
  // A text has the first of them.
  const std::string text_of_failure = TextOf(report.failures[0]);
  EXPECT_THAT(text_of_failure, HasSubstr("; this concerns the header, tensors tensor."));
  EXPECT_THAT(text_of_failure, EndsWith(" and 27 more"));
  EXPECT_EQ(std::string(Message(report.ToStatus())), text_of_failure);
}

TEST_F(RoundTrip, VerifyStatesThatThereIsNoManifest) {
  TROUPE_CHECK_OK(MakeAttemptDirectory(files_, directory_));
  const VerifyReport report = VerifyCheckpoint(files_, directory_, "");
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_EQ(TextOf(report.failures[0]),
            "manifest.json: it is missing: the directory is no checkpoint of Troupe, or its write "
            "did not end, or the file was removed");
  EXPECT_EQ(report.failures[0].code, StatusCode::kDataLoss);
}

TEST_F(RoundTrip, NeverFollowsALinkOutOfTheFolder) {
  const std::string digest = WriteCheckpoint(files_, directory_, {});
  const std::string path = JoinPath(directory_, ShardFileName(0));
  const std::string elsewhere = folder_.Child("elsewhere");
  TROUPE_CHECK_OK(files_.Rename(path, elsewhere));
  ASSERT_EQ(symlink(elsewhere.c_str(), path.c_str()), 0);
  EXPECT_FALSE(LoadAll(files_, directory_, digest, {}).ok());
  EXPECT_FALSE(VerifyCheckpoint(files_, directory_, digest).ToStatus().ok());
}

TEST_F(RoundTrip, AManifestThatBelongsToOtherShardsIsRefused) {
  // The sizes match but a tensor's name differs: each file verifies by itself, but its header is
  // not what the manifest states.
  const std::string digest = WriteCheckpoint(files_, directory_, {});
  auto manifest = *ReadManifest(files_, directory_, digest);
  for (v1::TensorSlice& tensor : *manifest.mutable_shards(0)->mutable_tensors()) {
    if (tensor.name() == "layers.0.q") tensor.set_name("layers.0.p");
  }
  const GlobalSlice wanted{"layers.0.p", "F32", {24, 8}, {{0, 0}, {24, 8}}};
  std::vector<std::byte> data(std::size_t{24} * 8 * 4);
  const Status status =
      LoadSlices(files_, directory_, manifest, std::array{LoadTarget{wanted, data}});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("layers.0.p of the manifest is missing from the file"));
}

TEST_F(RoundTrip, AFaultAtAnyCallFailsTheShardAndIsNeverRetried) {
  const auto ranks = SlicesOf({});
  const std::pair<FileOperation, int> operations_and_syncs[] = {
      {FileOperation::kStat, 0},         {FileOperation::kCreate, 0}, {FileOperation::kWrite, 0},
      {FileOperation::kSync, 1},         {FileOperation::kClose, 1},  {FileOperation::kRename, 1},
      {FileOperation::kSyncDirectory, 1}};
  for (const auto& [operation, syncs] : operations_and_syncs) {
    TemporaryDirectory folder;
    FaultyFileSystem faulty(files_);
    faulty.Add({.operation = operation, .error_number = ENOSPC});
    EXPECT_EQ(WriteRank(faulty, folder.path(), 0, ranks).status().code(),
              StatusCode::kResourceExhausted);
    EXPECT_EQ(faulty.Calls(operation, ""), 1);
    EXPECT_EQ(faulty.Calls(FileOperation::kSync, ""), syncs);
  }
}

TEST_F(RoundTrip, AnAttemptIsNeverWrittenTwice) {
  TROUPE_CHECK_OK(MakeAttemptDirectory(files_, directory_));
  const auto ranks = SlicesOf({});
  EXPECT_TRUE(WriteRank(files_, directory_, 0, ranks).ok());
  EXPECT_EQ(WriteRank(files_, directory_, 0, ranks).status().code(), StatusCode::kAlreadyExists);
}

TEST_F(RoundTrip, AKillAtAnyPointLeavesNothingThatReadsAsACheckpoint) {
  const auto ranks = SlicesOf({});
  for (const char* point :
       {"checkpoint.shard.created", "checkpoint.shard.written", "checkpoint.shard.synced",
        "checkpoint.shard.renamed", "checkpoint.shard.durable", "checkpoint.manifest.begin",
        "checkpoint.manifest.created", "checkpoint.manifest.written",
        "checkpoint.manifest.synced"}) {
    TemporaryDirectory folder;
    const pid_t child = fork();
    if (child == 0) {
      TROUPE_CHECK_OK(ArmFailpoints(fmt::format("{}=kill", point)));
      auto shard = WriteRank(files_, folder.path(), 0, ranks);
      v1::CheckpointManifest manifest;
      manifest.set_format_version(kManifestFormatVersion);
      *manifest.add_shards() = *shard;
      WriteManifest(files_, folder.path(), manifest).status().IgnoreError();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << point;
    EXPECT_EQ(ReadManifest(files_, folder.path(), "").status().code(), StatusCode::kNotFound);
  }
}

}  // namespace
}  // namespace troupe
