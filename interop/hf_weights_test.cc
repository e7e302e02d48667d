#include "interop/hf_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/confined/confined_file_system.h"
#include "base/confined/path_root.h"
#include "base/temporary_directory.h"
#include "interop/import.h"
#include "interop/testing.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The whole table of the embedding.
const Box kTable = {{0, 0}, {11, 8}};

class HfWeightsTest : public ::testing::Test {
 protected:
  std::string Child(const std::string& name) { return folder_.Child(name); }
  std::vector<ModelTensor> Tensors(bool tied) { return *LlamaTensors(SmallLlama(tied)); }

  // Opens a new directory with a single file of `tensors`.
  StatusOr<HfWeights> OpenFileOf(const std::vector<SafetensorsTensor>& tensors) {
    const std::string directory = Child(fmt::format("of-{}", ++count_));
    std::filesystem::create_directory(directory);
    WriteText(directory + "/model.safetensors", SafetensorsFile(tensors));
    return HfWeights::Open(files_, directory);
  }
  std::vector<SafetensorsTensor> Stored(bool tied, NumberFormat format) {
    std::vector<SafetensorsTensor> stored;
    for (const ModelTensor& tensor : Tensors(tied)) {
      stored.push_back(
          {tensor.name, std::string(DtypeOf(format)), tensor.shape, SmallWeights(tensor, format)});
    }
    return stored;
  }

  TemporaryDirectory folder_;
  PosixFileSystem files_;
  int count_ = 0;
};

// The identity of a file above 256 KiB is that of some of its blocks; each tensor has two of them.
TEST_F(HfWeightsTest, IdentityKnowsTheEndsOfEachTensor) {
  constexpr int64_t kRows = 100'000;
  std::vector<SafetensorsTensor> tensors;
  for (const char* const name : {"a", "b", "c"})
    tensors.push_back({name, "F32", {kRows}, std::string(4 * kRows, '\1')});
  const auto identity_of = [&] { return OpenFileOf(tensors)->Identity()->at(0); };
  const v1::DataFileIdentity first = identity_of();
  EXPECT_EQ(first.name(), "model.safetensors");
  EXPECT_GT(first.bytes(), 12 * kRows);
  EXPECT_THAT(first.digest(), ::testing::StartsWith("xxh128/"));
  EXPECT_EQ(identity_of().digest(), first.digest());
  for (SafetensorsTensor& tensor : tensors) {
    for (char* const changed : {&tensor.bytes.front(), &tensor.bytes.back()}) {
      *changed = '\2';
      EXPECT_NE(identity_of().digest(), first.digest()) << tensor.name;
      *changed = '\1';
    }
  }
  tensors.resize(1);
  tensors[0].bytes.resize(400);
  tensors[0].shape = {100};
  EXPECT_THAT(identity_of().digest(), ::testing::StartsWith("xxh128:")) << "all of a short file";
}

// A cache of models has links from a snapshot's names to files of blobs.
TEST_F(HfWeightsTest, BeneathARootLinksAreFollowedUnlessTheyLeaveIt) {
  for (const std::string folder : {"root", "root/blobs", "root/snapshot", "root/bad"})
    std::filesystem::create_directory(Child(folder));
  const std::string file = SafetensorsFile(Stored(false, NumberFormat::kFloat32));
  WriteText(Child("root/blobs/1"), file);
  WriteText(Child("secret"), file);
  std::filesystem::create_symlink("../blobs/1", Child("root/snapshot/model.safetensors"));
  std::filesystem::create_symlink("../../secret", Child("root/bad/model.safetensors"));
  ConfinedFileSystem confined(Child("root"));
  const auto inside = HfWeights::Open(confined, Child("root/snapshot"));
  ASSERT_TRUE(inside.ok()) << inside.status();
  EXPECT_TRUE(inside->Check(Tensors(false)).ok());
  for (const std::string folder : {"root/bad", "root/..", "elsewhere"}) {
    const Status refused = HfWeights::Open(confined, Child(folder)).status();
    EXPECT_TRUE(LeavesRoot(refused)) << refused;
    EXPECT_THAT(std::string(Message(refused)), HasSubstr(Child(folder)));
  }
}

TEST_F(HfWeightsTest, AnySliceInAnyFormatIsThatOfTheWholeTensor) {
  for (const NumberFormat format :
       {NumberFormat::kFloat32, NumberFormat::kBFloat16, NumberFormat::kFloat16}) {
    for (const int file_count : {1, 3}) {
      const std::string directory = Child(fmt::format("{}-{}", NameOf(format), file_count));
      WriteSmallLlama(directory, false, format, file_count);
      const auto weights = HfWeights::Open(files_, directory);
      ASSERT_TRUE(weights.ok()) << weights.status();
      ASSERT_TRUE(weights->Check(Tensors(false)).ok()) << weights->Check(Tensors(false));
      EXPECT_EQ(weights->format(), format);
      const ModelTensor tensor{"model.layers.1.mlp.down_proj.weight", {8, 12}};
      std::vector<float> whole(96);
      const std::string bytes = SmallWeights(tensor, format);
      ToFloat32(format, AsBytes(bytes), whole);
      for (const Box& box : {Box{{0, 0}, {8, 12}}, Box{{2, 0}, {3, 12}}, Box{{1, 5}, {6, 4}},
                             Box{{7, 11}, {1, 1}}}) {
        std::vector<float> part(static_cast<size_t>(*Elements(box.shape)), -1.0f);
        const Status read = weights->Read(tensor.name, tensor.shape, box, part);
        ASSERT_TRUE(read.ok()) << read;
        for (int64_t r = 0; r < box.shape[0]; ++r) {
          for (int64_t c = 0; c < box.shape[1]; ++c) {
            EXPECT_EQ(part[r * box.shape[1] + c],
                      whole[(box.offset[0] + r) * 12 + box.offset[1] + c]);
          }
        }
      }
      std::vector<float> none;
      EXPECT_EQ(weights->Read("nobody", {8, 12}, {{0, 0}, {0, 0}}, none).code(),
                StatusCode::kNotFound);
      EXPECT_EQ(weights->Read(tensor.name, {12, 8}, {{0, 0}, {0, 0}}, none).code(),
                StatusCode::kInvalidArgument);
    }
  }
}

TEST_F(HfWeightsTest, AHubCacheOfLinksIsRead) {
  WriteSmallLlama(Child("blobs"), true, NumberFormat::kFloat32);
  std::filesystem::create_directory(Child("snapshot"));
  std::filesystem::create_symlink("../blobs/model.safetensors",
                                  Child("snapshot/model.safetensors"));
  EXPECT_TRUE(HfWeights::Open(files_, Child("snapshot")).ok());
}

TEST_F(HfWeightsTest, WhatIsMissingUnknownOrOfAnotherShapeIsNamed) {
  std::vector<SafetensorsTensor> stored = Stored(false, NumberFormat::kFloat32);
  const auto refusal = [&](const std::vector<SafetensorsTensor>& tensors) {
    const auto weights = OpenFileOf(tensors);
    EXPECT_TRUE(weights.ok()) << weights.status();
    const Status status = weights->Check(Tensors(false));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return std::string(Message(status));
  };
  std::vector<SafetensorsTensor> missing = stored;
  missing.erase(missing.begin() + 3);
  EXPECT_THAT(refusal(missing),
              HasSubstr("the model has no model.layers.0.self_attn.k_proj.weight"));
  std::vector<SafetensorsTensor> unknown = stored;
  unknown.push_back({"model.layers.0.self_attn.q_proj.bias", "F32", {1}, std::string(4, 'x')});
  EXPECT_THAT(refusal(unknown), HasSubstr("does not have model.layers.0.self_attn.q_proj.bias"));
  std::vector<SafetensorsTensor> reshaped = stored;
  reshaped[0].shape = {8, 11};
  EXPECT_THAT(refusal(reshaped), HasSubstr("is [8, 11], but config.json requires [11, 8]"));
  std::vector<SafetensorsTensor> wide = stored;
  wide[1] = {wide[1].name, "F64", {8}, std::string(64, '\0')};
  EXPECT_THAT(refusal(wide), HasSubstr("dtype F64"));
  std::vector<SafetensorsTensor> mixed = stored;
  mixed[1] = {mixed[1].name, "BF16", {8}, std::string(16, '\0')};
  EXPECT_THAT(refusal(mixed), HasSubstr("is BF16 but others are F32"));
}

TEST_F(HfWeightsTest, WhatTransformersLeavesAsideIsLeftAside) {
  std::vector<SafetensorsTensor> stored = Stored(true, NumberFormat::kFloat32);
  stored.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {1}, "abcd"});
  stored.push_back({"lm_head.weight", "F32", {11, 8}, stored[0].bytes});
  const auto weights = OpenFileOf(stored);
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_TRUE(weights->Check(Tensors(true)).ok()) << weights->Check(Tensors(true));
  EXPECT_TRUE(weights->CheckTiedHead(kTable).ok()) << weights->CheckTiedHead(kTable);
}

// Training them as one table would lose one of the two.
TEST_F(HfWeightsTest, ASeparateHeadOfATiedModelMustHaveTheNumbersOfTheTable) {
  const std::vector<SafetensorsTensor> tied = Stored(true, NumberFormat::kFloat32);
  ASSERT_EQ(tied[0].name, "model.embed_tokens.weight");
  const auto with_head = [&](const SafetensorsTensor& head) {
    std::vector<SafetensorsTensor> stored = tied;
    stored.push_back(head);
    auto weights = OpenFileOf(stored);
    TROUPE_CHECK_OK(weights.status());
    TROUPE_CHECK_OK(weights->Check(Tensors(true)));
    return *std::move(weights);
  };
  const ModelTensor table{"model.embed_tokens.weight", {11, 8}};
  EXPECT_TRUE(
      with_head({"lm_head.weight", "BF16", {11, 8}, SmallWeights(table, NumberFormat::kBFloat16)})
          .CheckTiedHead(kTable)
          .ok())
      << "the numbers are equal in another format";
  std::string other = tied[0].bytes;
  other.back() ^= 1;  // the last number changes
  const HfWeights weights = with_head({"lm_head.weight", "F32", {11, 8}, other});
  EXPECT_THAT(std::string(Message(weights.CheckTiedHead(kTable))),
              AllOf(HasSubstr("model.safetensors: lm_head.weight has other numbers than "
                              "model.embed_tokens.weight"),
                    HasSubstr("tie_word_embeddings")));
  EXPECT_TRUE(weights.CheckTiedHead({{0, 0}, {10, 8}}).ok()) << "another rank has the last row";
  EXPECT_FALSE(weights.CheckTiedHead({{10, 0}, {1, 8}}).ok());
  EXPECT_THAT(
      std::string(Message(with_head({"lm_head.weight", "F32", {1}, "abcd"}).CheckTiedHead(kTable))),
      HasSubstr("lm_head.weight is [1] and model.embed_tokens.weight is [11, 8]"));
  // It is compared wherever a directory is opened as a model.
  const std::string directory = Child("tied");
  WriteSmallLlama(directory, true, NumberFormat::kFloat32);
  EXPECT_TRUE(OpenHfModel(files_, directory).ok());
  std::vector<SafetensorsTensor> stored = tied;
  stored.push_back({"lm_head.weight", "F32", {11, 8}, other});
  WriteText(directory + "/model.safetensors", SafetensorsFile(stored));
  EXPECT_THAT(std::string(Message(OpenHfModel(files_, directory).status())),
              HasSubstr("lm_head.weight has other numbers"));
}

TEST_F(HfWeightsTest, APointerOfGitLfsIsNamedAsSuchInPlaceOfEachFile) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid "
      "sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
  for (const char* const name :
       {"config.json", "model.safetensors.index.json", "part-1.safetensors", "model.safetensors"}) {
    const std::string directory = Child(fmt::format("pointer-{}", ++count_));
    WriteSmallLlama(directory, true, NumberFormat::kFloat32, 2);
    WriteText(directory + "/" + name, pointer);
    EXPECT_THAT(std::string(Message(OpenHfModel(files_, directory).status())),
                HasSubstr(directory + "/" + name + ": is a Git LFS pointer"));
  }
}

TEST_F(HfWeightsTest, HostileDirectoriesAreRefused) {
  EXPECT_EQ(HfWeights::Open(files_, folder_.path()).status().code(), StatusCode::kNotFound);
  const auto with_index = [&](const nlohmann::json& map) {
    const std::string directory = Child(fmt::format("index-{}", ++count_));
    WriteSmallLlama(directory, true, NumberFormat::kFloat32, 2);
    WriteText(directory + "/model.safetensors.index.json",
              nlohmann::json{{"weight_map", map}}.dump());
    const auto opened = HfWeights::Open(files_, directory);
    EXPECT_FALSE(opened.ok()) << map;
    return std::string(Message(opened.status()));
  };
  EXPECT_THAT(with_index({{"a", "../../etc/passwd"}}), HasSubstr("not a plain file name"));
  EXPECT_THAT(with_index({{"a", "/etc/passwd"}}), HasSubstr("not a plain file name"));
  EXPECT_THAT(with_index({{"a", ".."}}), HasSubstr("not a plain file name"));
  EXPECT_THAT(with_index({{"a", 3}}), HasSubstr("not a plain file name"));
  EXPECT_THAT(with_index(nlohmann::json::object()), HasSubstr("names no tensor"));
  EXPECT_THAT(with_index({{"model.norm.weight", "part-0.safetensors"}}),
              HasSubstr("tensor model.norm.weight is not in part-0.safetensors"));
  EXPECT_THAT(with_index({{"a", "absent.safetensors"}}), HasSubstr("absent.safetensors"));
  const std::string cut = Child("cut");
  WriteSmallLlama(cut, true, NumberFormat::kFloat32);
  const std::string whole = ReadText(cut + "/model.safetensors");
  WriteText(cut + "/model.safetensors", whole.substr(0, whole.size() - 1));
  EXPECT_EQ(HfWeights::Open(files_, cut).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
