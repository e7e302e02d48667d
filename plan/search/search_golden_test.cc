// Compares the layouts that a search proposes, over models, devices and topologies, with a golden
// file. To accept a change, run with TROUPE_UPDATE_GOLDEN=1 and review the difference.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/testing/test_extent.h"
#include "plan/device/device_profile.h"
#include "plan/job/job_file.h"
#include "plan/search/search.h"

namespace troupe {
namespace {

struct GoldenModel {
  const char* name;
  std::vector<std::string> job;
  std::vector<int> devices;
  bool takes_long = false;  // in builds with instrumentation
  bool varied = false;      // also with the search's own number of layouts with varied keys
};

const std::vector<GoldenModel> kModels = {
    {"tiny",
     {"model.preset=tiny", "training={global_batch_size: 16, sequence_length: 64}"},
     {1, 4, 6, 8},
     false,
     true},
    {"tiny in bfloat16, on GPUs",
     {"model.preset=tiny", "devices=cuda",
      "training={global_batch_size: 32, sequence_length: 256, compute_dtype: bfloat16}"},
     {2, 8}},
    {"uneven pattern with dropout",
     {"model.preset=tiny", "model.pattern=AADDADDDADAA", "model.hidden_dropout=0.1",
      "model.vocab_size=4001", "training={global_batch_size: 16, sequence_length: 64}"},
     {4, 8}},
    {"tied, with narrow MLPs",
     {"model.preset=tiny", "model.tie_word_embeddings=true", "model.intermediate_size=16",
      "model.vocab_size=1000", "training={global_batch_size: 16, sequence_length: 64}"},
     {4, 8}},
    {"mixture of experts",
     {"model.preset=tiny", "model.pattern=(AE)x3(AD)x1", "model.num_experts=8",
      "model.num_experts_per_tok=2", "model.moe_intermediate_size=352",
      "training={global_batch_size: 32, sequence_length: 128, compute_dtype: bfloat16}"},
     {4, 8},
     false,
     true},
    {"llama-124m",
     {"model.preset=llama-124m", "training={global_batch_size: 64, sequence_length: 1024}"},
     {8},
     true},
    {"eight layers of llama-8b",
     {"model.preset=llama-8b", "model.pattern=(AD)x8",
      "training={global_batch_size: 64, sequence_length: 4096, compute_dtype: bfloat16}"},
     {8, 16, 64},
     true},
    {"eight layers of llama-8b in float8",
     {"model.preset=llama-8b", "model.pattern=(AD)x8",
      "training={global_batch_size: 64, sequence_length: 4096, compute_dtype: bfloat16, "
      "float8: {recipe: current}}"},
     {16},
     true},
    {"ZBV by the job",
     {"model.preset=llama-1b", "model.pattern=(AD)x8", "parallelism.pipeline_parallel_schedule=ZBV",
      "training={global_batch_size: 32, sequence_length: 2048, compute_dtype: bfloat16}"},
     {16},
     true},
    {"auto by the job",
     {"model.preset=tiny", "model.pattern=(AD)x8", "parallelism.pipeline_parallel_schedule=auto",
      "training={global_batch_size: 16, sequence_length: 64}"},
     {4},
     true},
    {"runs of shards by the job",
     {"model.preset=llama-1b", "model.pattern=(AD)x8",
      "parallelism={zero_stage: 3, reshard_after_forward: \"2\"}",
      "training={global_batch_size: 32, sequence_length: 2048, compute_dtype: bfloat16}"},
     {16},
     true},
};

struct Topology {
  const char* name;
  const char* profile;
};

constexpr Topology kTopologies[] = {
    {"islands of eight H100",
     "name: h100\nmemory_bytes: 85899345920\nfloat32_flops_per_second: 60e12\n"
     "bfloat16_flops_per_second: 989e12\nmatmul_efficiency: 0.7\n"
     "memory_bytes_per_second: 3.35e12\nlaunch_seconds: 2.0e-6\ndevices_per_island: 8\n"
     "island: {bytes_per_second: 450e9, latency_seconds: 3.0e-6}\n"
     "fabric: {bytes_per_second: 50e9, latency_seconds: 6.0e-6}\n"},
    {"pairs with 24 GB on a slow fabric",
     "name: pairs\nmemory_bytes: 24000000000\nfloat32_flops_per_second: 30e12\n"
     "bfloat16_flops_per_second: 150e12\nmatmul_efficiency: 0.8\nattention_efficiency: 0.4\n"
     "memory_bytes_per_second: 1e12\nlaunch_seconds: 4.0e-6\ndevices_per_island: 2\n"
     "island: {bytes_per_second: 30e9, latency_seconds: 5.0e-6}\n"
     "fabric: {bytes_per_second: 3e9, latency_seconds: 3.0e-5}\n"},
    {"processors of hosts with four",
     "name: processors\nmemory_bytes: 16000000000\nfloat32_flops_per_second: 2e12\n"
     "bfloat16_flops_per_second: 4e12\nmatmul_efficiency: 0.9\nattention_efficiency: 0.3\n"
     "memory_bytes_per_second: 1e11\nlaunch_seconds: 2.0e-6\ndevices_per_island: 4\n"
     "island: {bytes_per_second: 6e9, latency_seconds: 1.0e-6}\n"
     "fabric: {bytes_per_second: 1e9, latency_seconds: 2.0e-5}\ntransfers_need_cores: true\n"},
    {"islands of three",
     "name: threes\nmemory_bytes: 40000000000\nfloat32_flops_per_second: 20e12\n"
     "bfloat16_flops_per_second: 300e12\nmatmul_efficiency: 0.6\n"
     "memory_bytes_per_second: 2e12\nlaunch_seconds: 0\ndevices_per_island: 3\n"
     "island: {bytes_per_second: 100e9, latency_seconds: 0}\n"
     "fabric: {bytes_per_second: 20e9, latency_seconds: 1.0e-5}\n"},
};

std::string Proposals(const GoldenModel& model, int devices, const Topology& topology, int varied) {
  v1::JobSpec spec;
  for (const std::string& key : model.job) EXPECT_TRUE(ApplyOverride(key, &spec).ok()) << key;
  const auto profile = ParseDeviceProfile(topology.profile, topology.name);
  EXPECT_TRUE(profile.ok()) << profile.status();
  const auto found =
      SearchLayouts(spec, *profile, {.devices = devices, .best = 4, .varied = varied});
  EXPECT_TRUE(found.ok()) << found.status();
  std::string text = fmt::format("{}; {} devices; {}{}\n", model.name, devices, topology.name,
                                 varied > 0 ? "; other keys varied" : "");
  for (const FoundLayout& layout : found->best) {
    text += fmt::format("  {:.6g} s, {} B:", layout.time.seconds, layout.memory_bytes);
    for (const std::string& key : layout.keys) text += " " + key;
    text += "\n";
  }
  return text;
}

TEST(SearchGolden, ProposesTheLayoutsOfTheFile) {
  const std::string path = "plan/search/golden/proposals.txt";
  std::string expected;
  {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    expected = text.str();
  }
  std::string all;
  for (const GoldenModel& model : kModels) {
    if (kInstrumented && model.takes_long) continue;
    for (const int devices : model.devices) {
      if (kInstrumented && devices > 4) continue;
      for (const Topology& topology : kTopologies) {
        for (const int varied : {0, SearchOptions{}.varied}) {
          if (varied > 0 && !model.varied) continue;
          const std::string proposed = Proposals(model, devices, topology, varied);
          all += proposed;
          EXPECT_NE(expected.find(proposed), std::string::npos) << proposed;
        }
      }
    }
  }
  if (std::getenv("TROUPE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << all;
    return;
  }
  if (!kInstrumented) {
    EXPECT_EQ(all, expected);
  }
}

}  // namespace
}  // namespace troupe
