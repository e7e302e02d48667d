#include "interop/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/temporary_directory.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/read/verify.h"
#include "interop/hf_config.h"
#include "interop/hf_weights.h"
#include "interop/import.h"
#include "interop/testing.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class ExportTest : public ::testing::Test {
 protected:
  std::string Child(const std::string& name) { return folder_.Child(name); }

  TemporaryDirectory folder_;
  PosixFileSystem files_;
};

TEST_F(ExportTest, ImportThenExportGivesTheSameFileInEveryFormat) {
  for (const bool tied : {false, true}) {
    for (const NumberFormat format :
         {NumberFormat::kFloat32, NumberFormat::kBFloat16, NumberFormat::kFloat16}) {
      const std::string name = fmt::format("{}-{}", tied, NameOf(format));
      WriteSmallLlama(Child(name), tied, format);
      // Small shards and little memory, so that tensors are split.
      const auto imported =
          ImportHfModel(files_, Child(name), Child(name + "-checkpoint"), {.shard_bytes_max = 700});
      ASSERT_TRUE(imported.ok()) << imported.status();
      const VerifyReport report =
          VerifyCheckpoint(files_, Child(name + "-checkpoint"), imported->digest);
      EXPECT_TRUE(report.ToStatus().ok()) << report.ToStatus();
      EXPECT_GT(report.files, 1);
      const auto exported = ExportHfModel(files_, Child(name + "-checkpoint"),
                                          Child(name + "-back"), {.memory_bytes_max = 100});
      ASSERT_TRUE(exported.ok()) << exported.status();
      EXPECT_EQ(exported->format, format);
      EXPECT_EQ(ReadText(Child(name + "-back/model.safetensors")),
                ReadText(Child(name + "/model.safetensors")));
      EXPECT_EQ(ReadText(Child(name + "-back/config.json")),
                ReadText(Child(name + "/config.json")));
    }
  }
}

TEST_F(ExportTest, AnImportStatesWhatItIs) {
  WriteSmallLlama(Child("hf"), false, NumberFormat::kBFloat16, 2);
  ASSERT_TRUE(ImportHfModel(files_, Child("hf"), Child("checkpoint")).ok());
  const auto manifest = ReadManifest(files_, Child("checkpoint"), "");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_TRUE(manifest->weights_only());
  EXPECT_EQ(manifest->state().step(), 0);
  EXPECT_EQ(manifest->shards_size(), 1);
  const auto spec = nlohmann::json::parse(manifest->job_spec_json());
  EXPECT_EQ(spec["model"]["pattern"], "(AD)x2");
  EXPECT_EQ(spec["model"]["export_dtype"], "bfloat16");
}

TEST_F(ExportTest, AboveTheSizeThereAreFilesWithAnIndexThatReadBack) {
  WriteSmallLlama(Child("hf"), true, NumberFormat::kFloat32);
  ASSERT_TRUE(ImportHfModel(files_, Child("hf"), Child("checkpoint")).ok());
  const auto exported =
      ExportHfModel(files_, Child("checkpoint"), Child("parts"), {.file_bytes_max = 1500});
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_GT(exported->files, 2);
  EXPECT_FALSE(std::filesystem::exists(Child("parts/model.safetensors")));
  const auto index = nlohmann::json::parse(ReadText(Child("parts/model.safetensors.index.json")));
  EXPECT_EQ(index["metadata"]["total_size"], exported->bytes);
  EXPECT_EQ(index["metadata"]["total_parameters"], exported->bytes / 4);
  ASSERT_TRUE(ImportHfModel(files_, Child("parts"), Child("again")).ok());
  ASSERT_TRUE(ExportHfModel(files_, Child("again"), Child("back")).ok());
  EXPECT_EQ(ReadText(Child("back/model.safetensors")), ReadText(Child("hf/model.safetensors")));
}

TEST_F(ExportTest, AnotherFormatRoundsAndOneTooNarrowIsRefused) {
  WriteSmallLlama(Child("hf"), true, NumberFormat::kFloat32);
  std::vector<SafetensorsTensor> stored;
  const auto tensors = LlamaTensors(SmallLlama(true));
  for (const ModelTensor& tensor : *tensors) {
    stored.push_back(
        {tensor.name, "F32", tensor.shape, SmallWeights(tensor, NumberFormat::kFloat32)});
  }
  ASSERT_TRUE(ImportHfModel(files_, Child("hf"), Child("small")).ok());
  ASSERT_TRUE(
      ExportHfModel(files_, Child("small"), Child("half"), {.format = NumberFormat::kFloat16})
          .ok());
  const auto half = HfWeights::Open(files_, Child("half"));
  ASSERT_TRUE(half.ok());
  ASSERT_TRUE(half->Check(*tensors).ok());
  EXPECT_EQ(half->format(), NumberFormat::kFloat16);

  const float large = 1e6f;
  std::memcpy(stored[0].bytes.data(), &large, 4);
  WriteText(Child("hf/model.safetensors"), SafetensorsFile(stored));
  ASSERT_TRUE(ImportHfModel(files_, Child("hf"), Child("large")).ok());
  const auto refused =
      ExportHfModel(files_, Child("large"), Child("none"), {.format = NumberFormat::kFloat16});
  EXPECT_EQ(refused.status().code(), StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("model.embed_tokens.weight: 1 "));
  EXPECT_FALSE(std::filesystem::exists(Child("none")));
}

TEST_F(ExportTest, NothingIsWrittenOverAndErrorsLeaveNothing) {
  WriteSmallLlama(Child("hf"), true, NumberFormat::kFloat32);
  EXPECT_EQ(ImportHfModel(files_, Child("hf"), Child("hf")).status().code(),
            StatusCode::kAlreadyExists);
  ASSERT_TRUE(ImportHfModel(files_, Child("hf"), Child("checkpoint")).ok());
  EXPECT_EQ(ExportHfModel(files_, Child("checkpoint"), Child("hf")).status().code(),
            StatusCode::kAlreadyExists);
  // Damage in the checkpoint is detected before any of it is exported.
  std::string shard = ReadText(Child("checkpoint/rank-00000.safetensors"));
  shard.back() ^= 1;
  WriteText(Child("checkpoint/rank-00000.safetensors"), shard);
  EXPECT_EQ(ExportHfModel(files_, Child("checkpoint"), Child("out")).status().code(),
            StatusCode::kDataLoss);
  EXPECT_FALSE(std::filesystem::exists(Child("out")));
  EXPECT_EQ(ImportHfModel(files_, Child("nowhere"), Child("out")).status().code(),
            StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(Child("out")));
}

TEST_F(ExportTest, InliningFillsTheModelAndRefusesContradictions) {
  WriteSmallLlama(Child("hf"), true, NumberFormat::kBFloat16);
  v1::ModelSpec model;
  model.set_from(Child("hf"));
  model.set_hidden_size(8);
  model.set_export_dtype("float32");
  ASSERT_TRUE(InlineHfModel(files_, &model).ok()) << InlineHfModel(files_, &model);
  EXPECT_EQ(model.from(), Child("hf"));
  EXPECT_EQ(model.vocab_size(), 11);
  EXPECT_EQ(model.export_dtype(), "float32");
  model.set_vocab_size(12);
  const Status refused = InlineHfModel(files_, &model);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("model.vocab_size"));
  v1::ModelSpec scaled;
  scaled.set_from(Child("hf"));
  scaled.mutable_rope_scaling()->set_factor(4);
  EXPECT_THAT(std::string(Message(InlineHfModel(files_, &scaled))), HasSubstr("rope_scaling"));
  v1::ModelSpec preset;
  EXPECT_TRUE(InlineHfModel(files_, &preset).ok());
  EXPECT_FALSE(preset.has_hidden_size());
}

}  // namespace
}  // namespace troupe
