#include "cli/output/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/text/display_width.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/layout/cluster_view.h"
#include "plan/layout/mesh.h"
#include "plan/make_plan.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

v1::Plan PlanWith(const std::vector<std::string>& overrides) {
  v1::JobSpec spec;
  for (const std::string& override : overrides) {
    const Status status = ApplyOverride(override, &spec);
    EXPECT_TRUE(status.ok()) << status;
  }
  ApplyDefaults(&spec);
  const int ranks = static_cast<int>(RankCount(spec.parallelism()));
  StatusOr<v1::Plan> plan = MakePlan(spec, ImaginedCluster(ranks, spec.devices()));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : v1::Plan();
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(PlanText, LinesFitEightyColumns) {
  const v1::Plan plans[] = {
      PlanWith({"model.preset=llama-8b", "devices=cuda", "training.global_batch_size=256",
                "parallelism={pipeline_parallel_degree: 8, tensor_parallel_degree: 4, "
                "data_parallel_shard_degree: 8, sequence_parallel: true}"}),
      PlanWith({"model.preset=llama-8b", "training.global_batch_size=64",
                "parallelism={pipeline_parallel_degree: 4, pipeline_parallel_schedule: "
                "Interleaved1F1B, pipeline_parallel_chunks: 2}"}),
      PlanWith({"model.preset=llama-1b", "data.blend=[{path: /a, weight: 3}, {path: /b}]",
                "training.global_batch_size=16",
                "parallelism={pipeline_parallel_degree: 2, pipeline_parallel_schedule: auto}"}),
      PlanWith({"model.preset=tiny", "lr_schedule.decay_ratio=0.2"})};
  const StepTime time = {.seconds = 1.23456,
                         .compute_seconds = 1.01234,
                         .communication_seconds = 0.123456,
                         .bubble_ratio = 0.5,
                         .mfu = 0.456};
  for (const v1::Plan& plan : plans) {
    const std::string text = PlanToText(
        plan, {.time = &time,
               .fault_cost = "a checkpoint every 30 min: a fault costs at most 30 min of training "
                             "and what is trained while a checkpoint is written"});
    for (const std::string& line : LinesOf(text)) EXPECT_LE(DisplayColumns(line), 80u) << line;
    // Every size has a decimal prefix.
    EXPECT_THAT(text, Not(HasSubstr("iB")));
  }
}

TEST(PlanText, ItBeginsWithTheAxesThatAreUsed) {
  EXPECT_THAT(PlanToText(PlanWith({"model.preset=tiny",
                                   "parallelism={pipeline_parallel_degree: 2, "
                                   "tensor_parallel_degree: 2}"})),
              StartsWith("mesh: 4 ranks = pipe 2 × tensor 2\nmodel: 3.08 M parameters, "));
  EXPECT_THAT(PlanToText(PlanWith({"model.preset=tiny"})), StartsWith("mesh: 1 rank\n"));
}

TEST(PlanText, AnEstimateIsShownWhereThereIsOne) {
  const v1::Plan plan = PlanWith({"model.preset=tiny"});
  const StepTime time = {.seconds = 2, .compute_seconds = 1.5, .bubble_ratio = 0.25, .mfu = 0.5};
  EXPECT_THAT(PlanToText(plan, {.time = &time}),
              HasSubstr("\nestimate: 2 s per step, MFU 50.0%, bubble 25.0%\n"
                        "  the busiest rank computes 1.5 s and communicates 0 s\n"));
  EXPECT_THAT(PlanToText(plan), Not(HasSubstr("estimate")));
}

TEST(PlanText, PathsBeneathTheWorkingDirectoryAreRelative) {
  const v1::Plan plan =
      PlanWith({"model.preset=tiny", "data.blend=[{path: /home/a, weight: 3}, {path: /homes/b}]"});
  const std::string text = PlanToText(plan, {.working_directory = "/home"});
  EXPECT_THAT(text, HasSubstr("\ndata: 75% of the samples from a\n"));
  EXPECT_THAT(text, HasSubstr("\ndata: 25% of the samples from /homes/b\n"));
  EXPECT_THAT(PlanToText(plan), HasSubstr("\ndata: 75% of the samples from /home/a\n"));
}

TEST(PlanText, StagesShareTheirColumns) {
  v1::Plan plan;
  plan.mutable_mesh()->set_pipe(2);
  for (int stage = 0; stage < 2; ++stage) {
    v1::ChunkPlan& chunk = *plan.add_chunks();
    chunk.set_chunk(stage);
    chunk.set_pipe_rank(stage);
    chunk.set_first_block(34 * stage);
    chunk.set_blocks("ADADADADADADADAD");
    chunk.set_has_embedding(stage == 0);
    chunk.set_has_head(stage == 1);
    chunk.set_parameters(stage == 0 ? 4'233'240'576 : 3'797'020'672);
    chunk.set_forward_flops(70.1e12);
    plan.add_memory()->set_total_bytes(stage == 0 ? 22'600'000'000 : 7'000'000'000);
  }
  plan.set_imbalance(1.25);
  EXPECT_THAT(PlanToText(plan),
              HasSubstr("\nstages:\n"
                        "  stage  from  blocks              parameters     forward   memory\n"
                        "      0     0  embedding + (AD)x8      4.23 G  70.1 TFLOP  22.6 GB\n"
                        "      1    34  (AD)x8 + head            3.8 G  70.1 TFLOP     7 GB\n"
                        "  imbalance: heaviest / mean = 1.250\n"));
}

TEST(PlanText, MemoryHasARowForEachPartThatSomeStageHas) {
  v1::Plan plan;
  plan.mutable_mesh()->set_pipe(2);
  for (const int64_t bytes : {1000, 2'000'000}) {
    v1::RankMemory& memory = *plan.add_memory();
    memory.set_parameter_bytes(bytes);
    memory.set_total_bytes(bytes);
    memory.set_threads(1);
    memory.add_peak("temporaries in use");
  }
  plan.mutable_memory(1)->set_saved_bytes(500);
  EXPECT_THAT(PlanToText(plan), AllOf(HasSubstr("\nmemory per rank, scratch for 1 thread:\n"
                                                "                     stage 0  stage 1\n"
                                                "  parameters            1 kB     2 MB\n"
                                                "  saved activations      0 B    500 B\n"
                                                "  total                 1 kB     2 MB\n"),
                                      Not(HasSubstr("temporaries in use"))));
  EXPECT_THAT(PlanToText(plan, {.verbose = true}),
              HasSubstr("\n  stage 1:\n    temporaries in use\n"));
}

TEST(PlanText, MemoryOfADeviceIsShownApartFromThatOfItsHost) {
  v1::Plan plan;
  plan.mutable_mesh()->set_pipe(1);
  v1::RankMemory& memory = *plan.add_memory();
  memory.set_total_bytes(2'000'000'000);
  memory.set_reserve_bytes(1'000'000'000);
  memory.set_snapshot_bytes(37'000'000);
  memory.set_host_bytes(37'000'000);
  memory.set_compiled_bytes(1'900'000'000);
  memory.add_compiled("6 programs");
  EXPECT_THAT(PlanToText(plan), HasSubstr("\nmemory per rank:\n"
                                          "                   stage 0\n"
                                          "  reserve             1 GB\n"
                                          "  total               2 GB\n"
                                          "  by the compiler   1.9 GB\n"
                                          "  pinned on host     37 MB\n"
                                          "  stage 0: 6 programs\n"));
}

TEST(PlanText, OfManyStagesTheFullestAreShown) {
  v1::Plan plan;
  plan.mutable_mesh()->set_pipe(9);
  for (int stage = 0; stage < 9; ++stage) {
    v1::RankMemory& memory = *plan.add_memory();
    memory.set_total_bytes(stage == 7 ? 100 : stage + 1);
    memory.set_reserve_bytes(1);
    plan.mutable_schedule()->add_ranks()->add_actions("F0.0");
  }
  const std::string text = PlanToText(plan);
  EXPECT_THAT(text, HasSubstr("memory per rank, of the 6 fullest of 9 stages:\n"
                              "           stage 3  stage 4  stage 5  stage 6  stage 7  stage 8\n"));
  EXPECT_THAT(
      text,
      HasSubstr("\n  stage 7 (peak 0 in flight): F0.0\n  … and 1 more (--verbose lists all)\n"));
  const std::string verbose = PlanToText(plan, {.verbose = true});
  EXPECT_THAT(verbose, HasSubstr("           stage 6  stage 7  stage 8\n"));
  EXPECT_THAT(verbose, HasSubstr("\n  stage 8 (peak 0 in flight): F0.0\n"));
}

TEST(PlanText, TrafficStatesWhereItCrossesIslandsAndWhatTheyAre) {
  v1::Plan plan;
  const auto add = [&plan](const char* axis, double bytes, double across) {
    v1::AxisTraffic& entry = *plan.add_traffic();
    entry.set_axis(axis);
    entry.set_purpose("gradient");
    entry.set_bytes_per_step(bytes);
    if (across >= 0) entry.set_across_islands_bytes_per_step(across);
  };
  add("data_shard", 3.7e9, -1);
  EXPECT_THAT(PlanToText(plan), AllOf(HasSubstr("  axis        purpose    bytes\n"
                                                "  data_shard  gradient  3.7 GB\n"),
                                      Not(HasSubstr("island"))));
  plan.clear_traffic();
  add("pipe", 2e6, 2e6);
  add("tensor", 445e9, 0);
  add("context", 5e6, 1e6);
  EXPECT_THAT(PlanToText(plan), HasSubstr("  axis     purpose    bytes  links\n"
                                          "  pipe     gradient    2 MB  across islands\n"
                                          "  tensor   gradient  445 GB  within islands\n"
                                          "  context  gradient    5 MB  1 MB across islands\n"
                                          "  an island: the workers that the fastest links join"));
  EXPECT_THAT(PlanToText(v1::Plan()), HasSubstr("per step:\n  none\n"));
}

TEST(PlanText, ActionsThatDoNotFitAreCountedUnlessItIsVerbose) {
  v1::Plan plan;
  auto& rank = *plan.mutable_schedule()->add_ranks();
  for (int i = 0; i < 40; ++i) rank.add_actions("F0.11");
  EXPECT_THAT(PlanToText(plan),
              HasSubstr("  stage 0 (peak 0 in flight): F0.11 F0.11 F0.11 F0.11 F0.11 F0.11 … 34 "
                        "more\n"));
  EXPECT_THAT(PlanToText(plan, {.verbose = true}), Not(HasSubstr("more")));
}

TEST(PlanText, WhatIsRarelyReadIsShownOnRequest) {
  v1::Plan plan = PlanWith({"model.preset=tiny", "parallelism.tensor_parallel_degree=2"});
  plan.add_compiler_options("xla_option=false");
  const std::string text = PlanToText(plan), verbose = PlanToText(plan, {.verbose = true});
  for (const char* rare :
       {"\nsamples: schema 1", "\nranks:\n  rank  tensor\n     0       0\n     1       1\n",
        "\nowners:\n", "\nwhat each axis leaves unsharded:\n",
        "\noptions of the devices' compiler:\n  xla_option=false\n"}) {
    EXPECT_THAT(text, Not(HasSubstr(rare)));
    EXPECT_THAT(verbose, HasSubstr(rare));
  }
}

TEST(PlanText, NoLineEndsWithinTheWordsThatScriptsLookFor) {
  for (int before = 40; before < 80; ++before) {
    v1::Plan plan;
    plan.add_warnings(std::string(static_cast<size_t>(before), 'a') + " has no effect: why");
    EXPECT_THAT(PlanToText(plan), HasSubstr("has no effect:")) << before;
  }
}

TEST(PlanText, WarningsComeLast) {
  v1::Plan plan = PlanWith({"model.preset=tiny"});
  plan.add_warnings("this is the last line");
  for (const bool verbose : {false, true}) {
    const std::string text =
        PlanToText(plan, {.fault_cost = "a fault costs a step", .verbose = verbose});
    EXPECT_THAT(text, HasSubstr("\ncheckpoints: a fault costs a step\n\nwarnings:\n"));
    EXPECT_THAT(text, EndsWith("\n  this is the last line\n"));
  }
}

}  // namespace
}  // namespace troupe
