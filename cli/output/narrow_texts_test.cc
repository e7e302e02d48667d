// Texts of commands are readable in 80 columns: no line of any of them is wider.
#include <gtest/gtest.h>

#include <ostream>
#include <sstream>
#include <string>

#include "base/text/display_width.h"
#include "cli/output/access_table.h"
#include "cli/output/checkpoint_text.h"
#include "cli/output/prepare_text.h"
#include "plan/job/key_table.h"

namespace troupe {
namespace {

constexpr int64_t kManyBytes = 999'999'999'999;
const std::string kLongName(63, 'n');
const std::string kLongPath =
    "/checkpoints/" + kLongName + "/step-00000100-epoch-1-attempt-1-at-1795502192641693564";
const std::string kLongTensor =
    "exp_avg_sq.model.layers.127.post_attention_layernorm.weight.and.more.words.than.most";

std::string Tokens(const TextStyle& style) {
  v1::UserToken token;
  token.set_id("5f0c6d1e9b2a7f34");
  token.set_name(kLongName);
  token.set_role("submitter");
  token.set_created(1795703142);
  token.set_expires(1798295142);
  token.set_revoked(1795766400);
  return TokenTableText({token}, style);
}

std::string Revocations(const TextStyle& style) {
  v1::Revocation serial;
  serial.set_serial(std::string(40, 'a'));
  serial.set_revoked(1795766400);
  serial.set_revoked_by("spiffe://" + kLongName + "/operator/" + kLongName);
  v1::Revocation identity = serial;
  identity.set_identity("spiffe://" + kLongName + "/worker/" + kLongName);
  return RevocationTableText({serial, identity}, style);
}

std::string Manifest(const TextStyle& style) {
  v1::CheckpointManifest manifest;
  manifest.set_job(kLongName);
  manifest.set_attempt(1'000'000);
  manifest.set_group_epoch(1'000'000);
  manifest.mutable_state()->set_step(1'000'000);
  manifest.mutable_state()->set_consumed_samples(kManyBytes);
  v1::ShardFile& shard = *manifest.add_shards();
  shard.set_name("rank-01023.safetensors");
  shard.set_rank(1023);
  shard.set_bytes(kManyBytes);
  shard.set_digest("xxh128:" + std::string(32, 'a'));
  v1::TensorSlice& tensor = *shard.add_tensors();
  tensor.set_name(kLongTensor);
  tensor.set_dtype("F32");
  tensor.add_shape(128'256);
  tensor.add_global_offset(0);
  tensor.add_global_shape(128'256);
  return ManifestText(manifest, style);
}

std::string Verified(const TextStyle& style) {
  return VerifiedText(kLongPath, {.step = 1'000'000, .bytes = kManyBytes, .files = 1024}, style);
}

std::string Difference(const TextStyle& style) {
  CheckpointDifference difference = {.tensors = 100'000, .elements = kManyBytes};
  difference.differing.push_back({.name = kLongTensor,
                                  .elements = kManyBytes,
                                  .differing = kManyBytes,
                                  .max_absolute = 1.23456e-10,
                                  .max_relative = 1.23e-10});
  difference.differing.push_back({.name = "model.norm.weight", .reason = kLongPath});
  return DifferenceText(difference, 1'000'000, 2'000'000, style);
}

std::string Import(const TextStyle& style) {
  ImportResult result = {
      .tensors = 100'000, .bytes = kManyBytes, .digest = "sha256:" + std::string(64, 'a')};
  result.model.set_export_dtype("bfloat16");
  return ImportText(kLongPath, result, style);
}

std::string Export(const TextStyle& style) {
  ExportResult result = {.tensors = 100'000, .files = 1024, .bytes = kManyBytes};
  result.tokenizer.directory = kLongPath;
  result.tokenizer.names = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                            "generation_config.json"};
  return ExportText(kLongPath, result, style);
}

std::string Prepare(const TextStyle& style) {
  return PrepareText({.documents = kManyBytes,
                      .tokens = kManyBytes,
                      .text_bytes = kManyBytes,
                      .files = {"headers.bin", "headers.idx"},
                      .vocab_size = 2'000'000'000,
                      .end_of_document = 1'999'999'999},
                     86'400, style);
}

std::string Keys(const TextStyle& style) { return KeyTableToText(KeyTable(""), style.columns); }

struct NarrowText {
  const char* name;
  std::string (*text)(const TextStyle&);
};

void PrintTo(const NarrowText& text, std::ostream* stream) { *stream << text.name; }

class NarrowTextsTest : public testing::TestWithParam<NarrowText> {};

TEST_P(NarrowTextsTest, NoLineIsWiderThan80Columns) {
  constexpr size_t kColumns = 80;
  const std::string text = GetParam().text({.columns = kColumns});
  EXPECT_TRUE(text.ends_with('\n')) << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(DisplayColumns(line), kColumns) << line;
}

INSTANTIATE_TEST_SUITE_P(
    Texts, NarrowTextsTest,
    testing::Values(NarrowText{"Tokens", Tokens}, NarrowText{"Revocations", Revocations},
                    NarrowText{"Manifest", Manifest}, NarrowText{"Verified", Verified},
                    NarrowText{"Difference", Difference}, NarrowText{"Import", Import},
                    NarrowText{"Export", Export}, NarrowText{"Prepare", Prepare},
                    NarrowText{"Keys", Keys}),
    [](const testing::TestParamInfo<NarrowText>& info) { return info.param.name; });

}  // namespace
}  // namespace troupe
