#include "interop/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"
#include "base/text_file.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/read/verify.h"
#include "interop/hf_config.h"
#include "interop/hf_weights.h"
#include "interop/import.h"
#include "interop/testing.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

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

// Makes the checkpoint state where its model came from, as a job's checkpoints do.
void StateModelFrom(FileSystem& files, const std::string& checkpoint, const std::string& from) {
  auto manifest = ReadManifest(files, checkpoint, "");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  auto spec = nlohmann::json::parse(manifest->job_spec_json());
  spec["model"]["from"] = from;
  manifest->set_job_spec_json(spec.dump());
  std::filesystem::remove(checkpoint + "/" + kManifestFileName);
  const auto written = WriteManifest(files, checkpoint, *manifest);
  ASSERT_TRUE(written.ok()) << written.status();
}

TEST_F(ExportTest, TheTokenizerOfModelFromOrOfTheStatedDirectoryIsCopied) {
  WriteSmallLlama(Child("hf"), true, NumberFormat::kFloat32);
  ASSERT_TRUE(ImportHfModel(files_, Child("hf"), Child("checkpoint")).ok());
  StateModelFrom(files_, Child("checkpoint"), Child("hf"));
  WriteText(Child("hf/tokenizer.json"), "{}");
  WriteText(Child("hf/generation_config.json"), "{\"top_k\": 5}");
  const auto own = ExportHfModel(files_, Child("checkpoint"), Child("own"));
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->no_tokenizer, "");
  EXPECT_EQ(own->tokenizer.directory, Child("hf"));
  EXPECT_THAT(own->tokenizer.names, ElementsAre("tokenizer.json", "generation_config.json"));
  EXPECT_EQ(ReadText(Child("own/tokenizer.json")), "{}");
  EXPECT_EQ(ReadText(Child("own/generation_config.json")), "{\"top_k\": 5}");
  EXPECT_EQ(ReadText(Child("own/model.safetensors")), ReadText(Child("hf/model.safetensors")));

  // All files are those of the stated directory.
  std::filesystem::create_directory(Child("other"));
  WriteText(Child("other/tokenizer.model"), "sentences");
  const auto other = ExportHfModel(files_, Child("checkpoint"), Child("stated"),
                                   {.tokenizer_directory = Child("other")});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_THAT(other->tokenizer.names, ElementsAre("tokenizer.model"));
  EXPECT_FALSE(std::filesystem::exists(Child("stated/generation_config.json")));
}

TEST_F(ExportTest, WithoutATokenizerAnExportStatesWhyUnlessOneWasAskedFor) {
  WriteSmallLlama(Child("hf"), true, NumberFormat::kFloat32);
  ASSERT_TRUE(ImportHfModel(files_, Child("hf"), Child("checkpoint")).ok());
  int count = 0;
  const auto reason = [&] {
    const auto exported =
        ExportHfModel(files_, Child("checkpoint"), Child(fmt::format("without-{}", ++count)));
    EXPECT_TRUE(exported.ok()) << exported.status();
    return exported.ok() ? exported->no_tokenizer : "";
  };
  EXPECT_EQ(reason(), "the checkpoint states no model.from");
  StateModelFrom(files_, Child("checkpoint"), Child("away"));
  EXPECT_EQ(reason(), "model.from cannot be read on this host: stat " + Child("away") +
                          ": No such file or directory");
  StateModelFrom(files_, Child("checkpoint"), Child("hf"));
  WriteText(Child("hf/generation_config.json"), "{}");
  EXPECT_THAT(reason(), HasSubstr(Child("hf") + " has none of tokenizer.json, "));
  EXPECT_TRUE(std::filesystem::exists(Child("without-3/generation_config.json")));

  for (const std::string asked : {"away", "hf"}) {
    const auto refused = ExportHfModel(files_, Child("checkpoint"), Child("refused"),
                                       {.tokenizer_directory = Child(asked)});
    EXPECT_THAT(std::string(Message(refused.status())), HasSubstr(Child(asked)));
    EXPECT_FALSE(std::filesystem::exists(Child("refused")));
  }
}

TEST_F(ExportTest, ATokenizerThatCannotBeCopiedIsStatedUnlessItWasAskedFor) {
  WriteSmallLlama(Child("hf"), true, NumberFormat::kFloat32);
  ASSERT_TRUE(ImportHfModel(files_, Child("hf"), Child("checkpoint")).ok());
  StateModelFrom(files_, Child("checkpoint"), Child("hf"));
  const std::string tokenizer = Child("hf/tokenizer.json");
  int count = 0;
  const auto expect_fault = [&](FileSystem& files, const std::string& fault) {
    SCOPED_TRACE(fault);
    const std::string directory = Child(fmt::format("without-{}", ++count));
    const auto exported = ExportHfModel(files, Child("checkpoint"), directory);
    ASSERT_TRUE(exported.ok()) << exported.status();
    EXPECT_THAT(exported->no_tokenizer,
                AllOf(StartsWith("the tokenizer of model.from cannot be copied: "),
                      HasSubstr(tokenizer + fault)));
    EXPECT_THAT(exported->tokenizer.names, IsEmpty());
    EXPECT_THAT(NamesIn(directory), ElementsAre("config.json", "model.safetensors"));
    const auto refused = ExportHfModel(files, Child("checkpoint"), Child("refused"),
                                       {.tokenizer_directory = Child("hf")});
    EXPECT_THAT(std::string(Message(refused.status())), HasSubstr(tokenizer + fault));
    EXPECT_FALSE(std::filesystem::exists(Child("refused")));
  };
  std::filesystem::create_symlink("nothing", tokenizer);
  expect_fault(files_, " is a symbolic link to a file that does not exist");
  std::filesystem::remove(tokenizer);
  WriteText(tokenizer, std::string(kGitLfsPointerBegin) + "v1\noid sha256:0\n");
  expect_fault(files_, ": is a Git LFS pointer");
  WriteText(tokenizer, "{}");
  FaultyFileSystem unreadable(files_);
  unreadable.Add({.operation = FileOperation::kOpen,
                  .path_contains = tokenizer,
                  .calls = 2,
                  .error_number = EACCES});
  expect_fault(unreadable, ": Permission denied");
}

TEST_F(ExportTest, ACopyThatFailsInTheMiddleEndsTheExportAndLeavesNothing) {
  WriteSmallLlama(Child("hf"), true, NumberFormat::kFloat32);
  ASSERT_TRUE(ImportHfModel(files_, Child("hf"), Child("checkpoint")).ok());
  StateModelFrom(files_, Child("checkpoint"), Child("hf"));
  WriteText(Child("hf/tokenizer.json"), "{}");
  std::filesystem::create_directory(Child("hf/additional_chat_templates"));
  WriteText(Child("hf/additional_chat_templates/rag.jinja"), "{{ messages }}");
  // In the first file, in the template after it, and after the tokenizer was copied.
  for (const char* name : {"out/tokenizer.json", "rag.jinja", "out/model.safetensors"}) {
    for (const bool asked : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", name, asked));
      FaultyFileSystem full(files_);
      full.Add({.operation = FileOperation::kWrite, .path_contains = name, .error_number = ENOSPC});
      ExportOptions options;
      if (asked) options.tokenizer_directory = Child("hf");
      EXPECT_EQ(ExportHfModel(full, Child("checkpoint"), Child("out"), options).status().code(),
                StatusCode::kResourceExhausted);
      EXPECT_FALSE(std::filesystem::exists(Child("out")));
    }
  }
}

// Files in which another process acts just before a file with the name `name` is created.
class IntrudedFileSystem final : public PosixFileSystem {
 public:
  IntrudedFileSystem(std::string name, std::function<void()> intrude)
      : name_(std::move(name)), intrude_(std::move(intrude)) {}

  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                                 CreateMode mode) override {
    if (path.ends_with("/" + name_)) intrude_();
    return PosixFileSystem::Create(path, mode);
  }
  StatusOr<std::unique_ptr<StreamingFile>> CreateStreaming(
      const std::string& path, const StreamingOptions& options) override {
    if (path.ends_with("/" + name_)) intrude_();
    return PosixFileSystem::CreateStreaming(path, options);
  }

 private:
  const std::string name_;
  const std::function<void()> intrude_;
};

TEST_F(ExportTest, AFailedExportOrImportRemovesOnlyWhatItWrote) {
  WriteSmallLlama(Child("hf"), true, NumberFormat::kFloat32);
  ASSERT_TRUE(ImportHfModel(files_, Child("hf"), Child("checkpoint")).ok());
  const auto intrude = [&] {
    std::filesystem::create_directory(Child("out/papers"));
    WriteText(Child("out/papers/thesis.tex"), "years of work");
    WriteText(Child("out/notes.txt"), "");
  };
  const auto expect_intact = [&] {
    EXPECT_THAT(NamesIn(Child("out")), ElementsAre("notes.txt", "papers"));
    EXPECT_EQ(ReadText(Child("out/papers/thesis.tex")), "years of work");
    std::filesystem::remove_all(Child("out"));
  };
  for (const bool exists : {false, true}) {
    SCOPED_TRACE(exists);
    if (exists) std::filesystem::create_directory(Child("out"));
    IntrudedFileSystem exported("model.safetensors", intrude);
    FaultyFileSystem full(exported);
    full.Add({.operation = FileOperation::kWrite,
              .path_contains = "out/model.safetensors",
              .error_number = ENOSPC});
    EXPECT_EQ(ExportHfModel(full, Child("checkpoint"), Child("out")).status().code(),
              StatusCode::kResourceExhausted);
    expect_intact();

    if (exists) std::filesystem::create_directory(Child("out"));
    IntrudedFileSystem imported("rank-00000.safetensors.tmp", intrude);
    FaultyFileSystem full_too(imported);
    full_too.Add(
        {.operation = FileOperation::kWrite, .path_contains = "out/rank", .error_number = ENOSPC});
    EXPECT_EQ(ImportHfModel(full_too, Child("hf"), Child("out")).status().code(),
              StatusCode::kResourceExhausted);
    expect_intact();
  }
}

TEST_F(ExportTest, AnEmptyDirectoryOfTheUserStaysAfterAnError) {
  WriteSmallLlama(Child("hf"), true, NumberFormat::kFloat32);
  ASSERT_TRUE(ImportHfModel(files_, Child("hf"), Child("checkpoint")).ok());
  std::filesystem::create_directory(Child("out"));
  FaultyFileSystem full(files_);
  full.Add({.operation = FileOperation::kWrite,
            .path_contains = "out/config.json",
            .error_number = ENOSPC});
  EXPECT_EQ(ExportHfModel(full, Child("checkpoint"), Child("out")).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_THAT(NamesIn(Child("out")), IsEmpty());
}

TEST_F(ExportTest, AnExportThatAnotherOneOvertakesLeavesTheFilesOfThatOne) {
  WriteSmallLlama(Child("hf"), true, NumberFormat::kFloat32);
  ASSERT_TRUE(ImportHfModel(files_, Child("hf"), Child("checkpoint")).ok());
  IntrudedFileSystem overtaken("model.safetensors", [&] {
    const auto exported = ExportHfModel(files_, Child("checkpoint"), Child("out"));
    EXPECT_TRUE(exported.ok()) << exported.status();
  });
  EXPECT_EQ(ExportHfModel(overtaken, Child("checkpoint"), Child("out")).status().code(),
            StatusCode::kAlreadyExists);
  EXPECT_THAT(NamesIn(Child("out")), ElementsAre("config.json", "model.safetensors"));
  EXPECT_EQ(ReadText(Child("out/model.safetensors")), ReadText(Child("hf/model.safetensors")));

  // A file that would be replaced by the last step of a durable write.
  IntrudedFileSystem late("config.json.tmp",
                          [&] { WriteText(Child("late/config.json"), "the user's"); });
  EXPECT_EQ(ExportHfModel(late, Child("checkpoint"), Child("late")).status().code(),
            StatusCode::kAlreadyExists);
  EXPECT_THAT(NamesIn(Child("late")), ElementsAre("config.json"));
  EXPECT_EQ(ReadText(Child("late/config.json")), "the user's");
}

TEST_F(ExportTest, InliningFillsTheModelAndRefusesContradictions) {
  WriteSmallLlama(Child("hf"), true, NumberFormat::kBFloat16);
  v1::ModelSpec model;
  model.set_from(Child("hf"));
  model.set_hidden_size(8);
  model.set_export_dtype("float32");
  model.add_trainable("*norm*");
  ASSERT_TRUE(InlineHfModel(files_, &model).ok()) << InlineHfModel(files_, &model);
  EXPECT_EQ(model.trainable_size(), 1);
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
