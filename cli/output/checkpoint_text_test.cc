#include "cli/output/checkpoint_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;

v1::CheckpointManifest ManifestOf(int64_t first_bytes) {
  v1::CheckpointManifest manifest;
  manifest.set_job("headers");
  manifest.set_attempt(3);
  manifest.set_group_epoch(1);
  manifest.mutable_state()->set_step(60);
  manifest.mutable_state()->set_consumed_samples(480);
  for (int rank : {0, 11}) {
    v1::ShardFile& shard = *manifest.add_shards();
    shard.set_name("rank-000" + std::string(rank == 0 ? "00" : "11") + ".safetensors");
    shard.set_rank(rank);
    shard.set_bytes(rank == 0 ? first_bytes : 9'268'224);
    shard.set_digest("xxh128:" + std::string(16, 'a') + std::string(16, 'b'));
  }
  v1::TensorSlice& tensor = *manifest.mutable_shards(0)->add_tensors();
  tensor.set_name("model.embed_tokens.weight");
  tensor.set_dtype("F32");
  for (const int64_t size : {130, 256}) tensor.add_shape(size);
  for (const int64_t offset : {0, 0}) tensor.add_global_offset(offset);
  for (const int64_t size : {259, 256}) tensor.add_global_shape(size);
  return manifest;
}

TEST(CheckpointTextTest, TheFilesOfACheckpointAreATableWithTheirTensors) {
  const std::string digest = "xxh128:" + std::string(16, 'a') + std::string(16, 'b');
  EXPECT_EQ(ManifestText(ManifestOf(912), {}),
            "job headers, step 60, 480 samples consumed\n"
            "attempt 3 to write one, in start 1 of the ranks\n"
            "FILE                    RANK     SIZE  DIGEST\n"
            "rank-00000.safetensors     0    912 B  " +
                digest +
                "\n"
                "  model.embed_tokens.weight F32 [130,256] at [0,0] of [259,256]\n"
                "rank-00011.safetensors    11  9.27 MB  " +
                digest + "\n");
  EXPECT_THAT(ManifestText(ManifestOf(912), {.columns = 60}), HasSubstr("9.27 MB  xxh128:"));
}

TEST(CheckpointTextTest, AWholeCheckpointHasItsSize) {
  const VerifyReport report = {.step = 60, .bytes = 37'073'924, .files = 4};
  EXPECT_EQ(VerifiedText("/h/ada/c/60", report, {.directory = "/h/ada"}),
            "c/60: step 60, 4 files, 37.1 MB: whole\n");
  EXPECT_EQ(VerifiedText("/" + std::string(70, 'c'), report, {.columns = 80}),
            "/" + std::string(70, 'c') + ":\n  step 60, 4 files, 37.1 MB: whole\n");
}

TEST(CheckpointTextTest, EachDifferenceHasTwoLinesWhereOneDoesNotFit) {
  CheckpointDifference difference = {.tensors = 130, .elements = 9'268'224};
  difference.differing.push_back({.name = "model.norm.weight", .reason = "only in the first"});
  EXPECT_EQ(DifferenceText(difference, 40, 60, {.columns = 80}),
            "model.norm.weight: only in the first\n"
            "steps 40 and 60: 130 tensors with 9268224 elements compared, 1 differ\n");
  difference.differing.push_back({.name = "exp_avg.model.layers.0.mlp.down_proj.weight",
                                  .elements = 65'536,
                                  .differing = 65'535,
                                  .max_absolute = 0.00012345678,
                                  .max_relative = 0.5});
  EXPECT_EQ(DifferenceText(difference, 40, 60, {.columns = 80}),
            "model.norm.weight:\n"
            "  only in the first\n"
            "exp_avg.model.layers.0.mlp.down_proj.weight:\n"
            "  65535 of 65536 elements differ, by at most 0.000123457, relatively 0.5\n"
            "steps 40 and 60: 130 tensors with 9268224 elements compared, 2 differ\n");
  EXPECT_THAT(DifferenceText(difference, 40, 60, {}),
              HasSubstr("down_proj.weight: 65535 of 65536 elements differ, by at most "
                        "0.000123457, relatively 0.5\n"));
  EXPECT_THAT(DifferenceText({.tensors = 1, .elements = 1}, 4, 4, {}),
              HasSubstr("1 tensor with 1 element compared, all equal\n"));
}

TEST(CheckpointTextTest, AnImportHasItsDigestOnALineOfItsOwn) {
  ImportResult result = {.tensors = 20, .bytes = 268'195, .digest = "sha256:ac49"};
  result.model.set_export_dtype("bfloat16");
  EXPECT_EQ(ImportText("/h/ada/imported", result, {.directory = "/h/ada"}),
            "imported: 20 tensors of bfloat16, 268 kB as float32\n"
            "digest sha256:ac49\n");
}

TEST(CheckpointTextTest, AnExportNamesTheFilesThatItCopied) {
  ExportResult result = {.tensors = 20, .files = 1, .bytes = 253'440};
  EXPECT_EQ(ExportText("exported", result, {}),
            "exported: 20 tensors of float32 in 1 file, 253 kB\n");
  result.tokenizer.directory = "/models/llama";
  result.tokenizer.names = {"tokenizer.json", "chat_template.jinja"};
  EXPECT_THAT(ExportText("exported", result, {}),
              HasSubstr("\ncopied from /models/llama: tokenizer.json, chat_template.jinja\n"));
}

}  // namespace
}  // namespace troupe
