#include "plan/make_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "model/build.h"
#include "model/cost.h"
#include "plan/cost/estimate.h"
#include "plan/cost/overlapped_pairs.h"
#include "plan/device/device_traits.h"
#include "plan/job/job_choices.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/job/violation.h"
#include "plan/layout/mesh.h"
#include "plan/schedules/schedules.h"
#include "plan/text/plan_json.h"
#include "plan/validate/read_channels.h"
#include "plan/validate/stage_inputs.h"
#include "plan/validate/validate.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

v1::JobSpec JobWith(const std::vector<std::string>& overrides) {
  v1::JobSpec spec;
  for (const auto& override : overrides) {
    const Status status = ApplyOverride(override, &spec);
    EXPECT_TRUE(status.ok()) << status;
  }
  ApplyDefaults(&spec);
  return spec;
}

StatusOr<v1::Plan> PlanWith(const std::vector<std::string>& overrides) {
  const v1::JobSpec spec = JobWith(overrides);
  return MakePlan(spec, ImaginedCluster(static_cast<int>(RankCount(spec.parallelism())), "cpu"));
}

TEST(MakePlanTest, MemoryAndTrafficFollowTheZeroStage) {
  const int64_t layer = 256 * (2 * 256 + 2 * 128) + 3 * 256 * 704 + 2 * 256;
  const int64_t table = 259 * 256;
  const int64_t parameters = 4 * layer + 2 * table + 256;
  // The first of two ranks has the larger block of the odd vocabulary, twice.
  const int64_t block = (parameters + 2 * 256) / 2;
  constexpr double kMicrobatches = 4;
  for (const int64_t zero_stage : {1, 2, 3}) {
    SCOPED_TRACE(zero_stage);
    const auto plan =
        PlanWith({"model.preset=tiny", "training={global_batch_size: 16, micro_batch_size: 2}",
                  "parallelism.data_parallel_shard_degree=2",
                  "parallelism.zero_stage=" + std::to_string(zero_stage)});
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto& memory = plan->memory(0);
    EXPECT_EQ(memory.parameter_bytes(), 4 * block);
    EXPECT_EQ(memory.optimizer_bytes(), 8 * block);
    EXPECT_EQ(memory.gradient_bytes(), 4 * (zero_stage == 1 ? parameters : block));
    EXPECT_EQ(memory.compute_copy_bytes(), zero_stage == 3 ? 0 : 4 * (parameters - block));
    std::map<std::string, double> sent;
    for (const auto& entry : plan->traffic()) {
      if (entry.axis() == "data_shard") sent[entry.purpose()] = entry.bytes_per_step();
    }
    // Each gather and each scatter sends half of four bytes per parameter.
    const double all = 2.0 * static_cast<double>(parameters);
    EXPECT_EQ(sent["gradient"], zero_stage == 1 ? all : kMicrobatches * all);
    // The embedding's backward does not read its table.
    const double again = all - 2.0 * static_cast<double>(table);
    EXPECT_EQ(sent["unshard"], zero_stage == 3 ? kMicrobatches * (all + again) : all);
  }
}

TEST(MakePlanTest, GradientsReducedInBfloat16AreHalfTheBytesInTheSameMemory) {
  const auto plan = [](const char* reduce, const std::string& zero_stage) {
    return PlanWith({"model.preset=tiny", "model.tie_word_embeddings=true",
                     "training={global_batch_size: 16, micro_batch_size: 2}",
                     std::string("training.mixed_precision.reduce=") + reduce,
                     "parallelism={data_parallel_shard_degree: 2, pipeline_parallel_degree: 2, "
                     "data_parallel_replicate_degree: 2}",
                     "parallelism.zero_stage=" + zero_stage});
  };
  for (const char* zero_stage : {"1", "2", "3"}) {
    SCOPED_TRACE(zero_stage);
    const auto whole = plan("float32", zero_stage), half = plan("bfloat16", zero_stage);
    ASSERT_TRUE(whole.ok() && half.ok()) << whole.status() << half.status();
    EXPECT_EQ(half->memory(0).total_bytes(), whole->memory(0).total_bytes());
    ASSERT_EQ(half->traffic_size(), whole->traffic_size());
    int gradients = 0;
    for (int i = 0; i < half->traffic_size(); ++i) {
      const auto &less = half->traffic(i), &all = whole->traffic(i);
      const bool halved = all.purpose() == "gradient";
      gradients += halved;
      EXPECT_EQ(less.bytes_per_step(), all.bytes_per_step() / (halved ? 2 : 1))
          << all.axis() << " " << all.purpose();
    }
    EXPECT_EQ(gradients, 3) << "over data_shard, data_replicate and the owners of the table";
  }
}

TEST(MakePlanTest, ReplicasOfShardsReduceTheirBlocksAlone) {
  const auto plan = PlanWith(
      {"model.preset=tiny", "training={global_batch_size: 16, micro_batch_size: 2}",
       "parallelism.data_parallel_shard_degree=2", "parallelism.data_parallel_replicate_degree=2"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  double sent = 0;
  for (const auto& entry : plan->traffic()) {
    if (entry.axis() == "data_replicate" && entry.purpose() == "gradient")
      sent = entry.bytes_per_step();
  }
  EXPECT_NEAR(sent, static_cast<double>(plan->memory(0).gradient_bytes()), 1e-3 * sent);
  EXPECT_GT(sent, 0);
}

TEST(MakePlanTest, TheQuickstartPlanIsGolden) {
  const auto plan =
      PlanWith({"model.preset=tiny", "training={global_batch_size: 16, micro_batch_size: 2}",
                "parallelism={tensor_parallel_degree: 2, "
                "pipeline_parallel_degree: 2}"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Json json = Json::parse(PlanToJson(*plan));
  EXPECT_EQ(json["mesh"].dump(),
            R"({"context":1,"data_replicate":1,"data_shard":1,"expert":1,"pipe":2,"tensor":2})");
  EXPECT_EQ(json["plan_digest"], plan->digest());
  EXPECT_FALSE(json.contains("digest")) << "one key for one value";
  EXPECT_TRUE(json["warnings"].empty()) << json["warnings"];
  EXPECT_EQ(json["ranks"].size(), 4u);
  EXPECT_EQ(json["ranks"][3]["coordinates"]["pipe"], 1);
  EXPECT_EQ(json["ranks"][3]["coordinates"]["tensor"], 1);
  EXPECT_EQ(json["stages"][0]["blocks"], "ADAD");
  EXPECT_EQ(json["stages"][1]["blocks"], "ADAD");
  EXPECT_EQ(json["stages"][1]["first_block"], 4);
  EXPECT_TRUE(json["stages"][0]["has_embedding"]);
  EXPECT_TRUE(json["stages"][1]["has_head"]);
  // 4 × (attention 256·(2·256 + 2·128) + MLP 3·256·704 + two norms) + embedding, head and norm.
  const int64_t layer = 256 * (2 * 256 + 2 * 128) + 3 * 256 * 704 + 2 * 256;
  EXPECT_EQ(json["parameters"], 4 * layer + 2 * 259 * 256 + 256);
  EXPECT_EQ(json["stages"][0]["parameters"], 2 * layer + 259 * 256);
  EXPECT_EQ(json["schedule"]["name"], "1F1B");
  EXPECT_DOUBLE_EQ(json["schedule"]["bubble_ratio"], 1.0 / 9);
  EXPECT_EQ(json["schedule"]["peak_live_activations"].dump(), "[2,1]");
  EXPECT_EQ(json["schedule"]["stages"].dump(), "[[0],[1]]");
  EXPECT_EQ(json["schedule"]["ranks"][0][2], "B0.0");
  EXPECT_EQ(json["cannot_fix"].size(), 6u);
  for (const auto& stage : json["stages"]) EXPECT_GT(stage["memory"]["total_bytes"], 0);
}

TEST(MakePlanTest, TheSnapshotOfAsynchronousSavesIsPartOfTheMemory) {
  const auto memory = [](std::vector<std::string> overrides) {
    const auto plan = PlanWith(overrides);
    EXPECT_TRUE(plan.ok()) << ToString(plan.status());
    return plan->memory(0);
  };
  const auto without = memory({"checkpoint.folder=/c", "checkpoint.async_mode=disabled"});
  const auto with = memory({"checkpoint.folder=/c", "checkpoint.async_mode=async"});
  EXPECT_EQ(without.snapshot_bytes(), 0);
  // And the number of applied steps.
  EXPECT_EQ(with.snapshot_bytes(), with.parameter_bytes() + with.optimizer_bytes() + 4);
  EXPECT_EQ(with.total_bytes(), without.total_bytes() + with.snapshot_bytes());
  // Nothing is ever saved.
  EXPECT_EQ(memory({"checkpoint.folder=\"\"", "checkpoint.async_mode=async"}).snapshot_bytes(), 0);
  // Each replica writes its share.
  const auto shared = memory({"checkpoint.folder=/c", "checkpoint.async_mode=async",
                              "parallelism.data_parallel_replicate_degree=2"});
  EXPECT_EQ(shared.snapshot_bytes(), with.snapshot_bytes() / 2);
}

TEST(MakePlanTest, SavesAreAsynchronousWhereNothingElseIsStated) {
  // A job that states no folder gets one.
  for (const std::vector<std::string>& stated :
       {std::vector<std::string>{}, std::vector<std::string>{"checkpoint.folder=/c"}}) {
    const v1::JobSpec spec = JobWith(stated);
    EXPECT_TRUE(SavesAsynchronously(spec.checkpoint()));
    const auto plan = PlanWith(stated);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const v1::RankMemory& memory = plan->memory(0);
    EXPECT_GT(memory.snapshot_bytes(), 0);
    EXPECT_EQ(memory.snapshot_bytes(), memory.parameter_bytes() + memory.optimizer_bytes() + 4);
  }
}

TEST(MakePlanTest, AHeadMayBeNarrowerThanItsPartOfTheHiddenSize) {
  const auto plan =
      PlanWith({"model={pattern: A, hidden_size: 100, num_attention_heads: 8, "
                "num_key_value_heads: 8, head_dim: 12, vocab_size: 64}"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  // The matrices of attention are 100 by 8 * 12, and the norms of the block and of the end have 100
  // elements each.
  EXPECT_EQ(plan->parameters(), 4 * 100 * 96 + 2 * 64 * 100 + 2 * 100);
}

TEST(MakePlanTest, WhatIsAcceptedWithoutAnEffectIsWarnedOf) {
  const auto warned = [](const char* override) {
    const auto plan = PlanWith({override, "checkpoint.folder=/c"});
    return plan.ok() && plan->warnings_size() == 1 ? plan->warnings(0) : std::string();
  };
  EXPECT_THAT(warned("parallelism.context_parallel_method=all_to_all"),
              HasSubstr("= \"all_to_all\" has no effect"));
  EXPECT_THAT(warned("parallelism.expert_dispatch=all_gather"),
              HasSubstr("= \"all_gather\" has no effect"));
  EXPECT_NE(warned("model.max_position_embeddings=16").find("256, above the 16 positions"),
            std::string::npos);
  EXPECT_EQ(warned("training.steps=3"), "");
}

TEST(MakePlanTest, OnlyStatedNumbersOfTheBucketPolicyAreReportedAsInherited) {
  const auto of_buckets = [](std::vector<std::string> overrides) {
    overrides.push_back("training.global_batch_size=12");
    const auto plan = PlanWith(overrides);
    EXPECT_TRUE(plan.ok()) << plan.status();
    std::string lines;
    for (const std::string& line : plan->warnings()) {
      if (line.starts_with("parallelism.bucket")) lines += line + "\n";
    }
    return lines;
  };
  const std::string data = "parallelism.data_parallel_replicate_degree=3";
  EXPECT_EQ(of_buckets({}), "");  // nothing is reduced
  EXPECT_EQ(of_buckets({data}), "");
  EXPECT_EQ(of_buckets({data, "parallelism.bucket.elements=1000"}), "");
  EXPECT_EQ(of_buckets({data, "parallelism.bucket={elements: 1000, alignment: 32, padding: 96}"}),
            "");
  EXPECT_THAT(of_buckets({data, "parallelism.bucket={elements: 1000, alignment: 32, padding: 64}"}),
              HasSubstr("parallelism.bucket.padding = 64 is not a multiple of the 3 ranks that "
                        "reduce a bucket"));
}

TEST(MakePlanTest, TheSharesOfTheDataAreReported) {
  const auto blend = PlanWith({"data.blend=[{path: /a, weight: 3}, {path: /b}]"});
  ASSERT_TRUE(blend.ok()) << blend.status();
  EXPECT_EQ(Json::parse(PlanToJson(*blend))["data"].dump(),
            R"([{"path":"/a","share":0.75,"weight":3.0},{"path":"/b","share":0.25,"weight":1.0}])");
  const auto alone = PlanWith({"data.train=/a"});
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(Json::parse(PlanToJson(*alone))["data"].dump(),
            R"([{"path":"/a","share":1.0,"weight":1.0}])");
  EXPECT_NE(alone->digest(), blend->digest());  // other samples: the steps compute something else
}

TEST(MakePlanTest, RecordsTheChannelsOfSamplesThatItsStagesRead) {
  const auto plain = PlanWith({"parallelism.pipeline_parallel_degree=2"});
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(ToText(plain->samples()),
            "schema 1: tokens i32 a token, targets i32 a token, weights f32 a token, positions i32 "
            "a token");
  const auto masked = PlanWith({"parallelism.pipeline_parallel_degree=2", "data.document_mask=true",
                                "model.hidden_dropout=0.1"});
  ASSERT_TRUE(masked.ok()) << masked.status();
  const Json samples = Json::parse(PlanToJson(*masked))["samples"];
  EXPECT_EQ(samples["schema_version"], 1);
  ASSERT_EQ(samples["channels"].size(), 6u);
  EXPECT_EQ(samples["channels"][4].dump(),
            R"({"extent":"token","lanes":1,"name":"documents","type":"i32"})");
  EXPECT_EQ(samples["channels"][5].dump(),
            R"({"extent":"sample","lanes":2,"name":"slots","type":"i32"})");
  // The operations of a step differ; a newer schema alone changes none.
  EXPECT_NE(masked->digest(), plain->digest());
}

TEST(MakePlanTest, APlanOfBeforeChannelsWereRecordedGetsThemWhenItIsPlaced) {
  const v1::JobSpec spec = JobWith({});
  const ClusterView cluster = ImaginedCluster(1, "cpu");
  v1::Plan old = MakeUnplacedPlan(spec).value();
  old.clear_samples();
  const auto placed = PlacePlan(spec, old, cluster);
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(placed->samples().channels_size(), 4);
  EXPECT_EQ(placed->digest(), MakePlan(spec, cluster)->digest());
  EXPECT_EQ(PlacePlan(spec, *placed, cluster)->digest(), placed->digest());
}

TEST(MakePlanTest, ProgramsHaltOnTheirOwnWhereTheHostLearnsOfAStepLate) {
  EXPECT_EQ(DeviceTraitsOf("cpu").control_lag_steps, 0);
  EXPECT_EQ(DeviceTraitsOf("cuda").control_lag_steps, 1);
  v1::JobSpec spec = JobWith({});
  v1::Plan plan = MakeUnplacedPlan(spec).value();
  EXPECT_EQ(plan.control_lag_steps(), 0);
  EXPECT_FALSE(MakeStageBuildOptions(DecodeJob(spec).value(), plan, 0)->halts);
  plan.set_control_lag_steps(1);
  EXPECT_TRUE(MakeStageBuildOptions(DecodeJob(spec).value(), plan, 0)->halts);
  // A skipped step does not delay a later one.
  spec.mutable_training()->set_on_nonfinite("skip_step");
  EXPECT_FALSE(MakeStageBuildOptions(DecodeJob(spec).value(), plan, 0)->halts);
}

TEST(MakePlanTest, AGpuHasTwoGibibytesOfTheHeadsLogitsAtOnce) {
  const auto head_rows = [](const char* devices, const char* model, const char* dtype, int tensor) {
    const v1::JobSpec spec = JobWith({std::string("model.preset=") + model,
                                      std::string("training.compute_dtype=") + dtype,
                                      fmt::format("parallelism.tensor_parallel_degree={}", tensor),
                                      std::string("devices=") + devices});
    const auto plan = MakeUnplacedPlan(spec);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return MakeStageBuildOptions(DecodeJob(spec).value(), *plan, 0)->head_rows;
  };
  EXPECT_EQ(head_rows("cpu", "llama-124m", "bfloat16", 1), 1024);
  EXPECT_EQ(head_rows("cuda", "llama-124m", "bfloat16", 1), 16384);
  EXPECT_EQ(head_rows("cuda", "llama-124m", "float32", 1), 8192);
  EXPECT_EQ(head_rows("cuda", "llama-1b", "bfloat16", 1), 8192);
  EXPECT_EQ(head_rows("cuda", "llama-1b", "bfloat16", 4), 32768);
}

TEST(MakePlanTest, MemoryHasItsPeakAndTheThreadsItIsFor) {
  const auto plan = PlanWith({});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto& memory = plan->memory(0);
  EXPECT_EQ(memory.threads(), 1);
  ASSERT_GE(memory.peak_size(), 2);
  EXPECT_NE(memory.peak(0).find("of temporaries in use in"), std::string::npos) << memory.peak(0);
  const Json json = Json::parse(PlanToJson(*plan));
  EXPECT_EQ(json["stages"][0]["memory"]["peak"].size(), static_cast<size_t>(memory.peak_size()));
  EXPECT_EQ(json["stages"][0]["memory"]["threads"], 1);
}

TEST(MakePlanTest, ModelFlopsFollowTheStatedConvention) {
  const auto plan = PlanWith({"model.preset=llama-124m", "training={global_batch_size: 4}"});
  const double tokens = 4 * 256;
  const double layer =
      6 * tokens * 768 * (4 * 768) + 6 * 4 * 256.0 * 256 * 768 + 6 * tokens * 768 * 2048 * 3;
  EXPECT_DOUBLE_EQ(plan->model_flops_per_step(), 12 * layer + 6 * tokens * 768 * 50304);
  EXPECT_EQ(plan->parameters(),
            50304 * 768 + 12 * (4 * 768 * 768 + 3 * 768 * 2048 + 2 * 768) + 768);
}

TEST(MakePlanTest, StagesAreCutByCostWithTheHeadCounted) {
  const auto plan = PlanWith({"model.preset=llama-124m", "parallelism.pipeline_parallel_degree=2"});
  ASSERT_TRUE(plan.ok());
  // The head costs as much as five layers, so the last stage has fewer blocks.
  EXPECT_GT(plan->chunks(0).block_count(), plan->chunks(1).block_count() + 6);
  EXPECT_LT(plan->imbalance(), 1.05);
  const auto split = PlanWith({"model.preset=llama-124m",
                               "parallelism={pipeline_parallel_degree: 2, "
                               "pipeline_parallel_split_points: [12]}"});
  EXPECT_EQ(split->chunks(1).first_block(), 12);
  EXPECT_GT(split->imbalance(), 1.2);
}

TEST(MakePlanTest, TiedWeightsBelongToTheFirstAndTheLastStage) {
  const auto plan = PlanWith({"model={preset: tiny, tie_word_embeddings: true}",
                              "parallelism.pipeline_parallel_degree=4"});
  EXPECT_THAT(plan->ownership(1), HasSubstr("stages 0 and 3"));
  const auto tensor = PlanWith({"model.preset=tiny", "parallelism.tensor_parallel_degree=4"});
  EXPECT_THAT(tensor->ownership(1), HasSubstr("3 of 65 and 1 of 64"));
}

TEST(MakePlanTest, EveryDegreeAppearsInMeshRanksAndTraffic) {
  const auto plan =
      PlanWith({"parallelism={tensor_parallel_degree: 2, pipeline_parallel_degree: 2,"
                " data_parallel_replicate_degree: 2}"});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->ranks_size(), 8);
  std::set<std::string> axes;
  for (const auto& entry : plan->traffic()) {
    axes.insert(entry.axis());
    EXPECT_GT(entry.bytes_per_step(), 0);
  }
  EXPECT_TRUE(axes.contains("tensor") && axes.contains("pipe") && axes.contains("data_replicate"));
  EXPECT_EQ(PlanWith({})->traffic_size(), 0);
}

TEST(MakePlanTest, FormulasAgreeWithTheStageProgramsThatRun) {
  for (const char* tied : {"true", "false"}) {
    for (const char* schedule : {"1F1B", "Interleaved1F1B", "ZBV"}) {
      SCOPED_TRACE(schedule);
      const v1::JobSpec spec =
          JobWith({"model={preset: tiny, num_key_value_heads: 2, tie_word_embeddings: " +
                       std::string(tied) + "}",
                   "parallelism={pipeline_parallel_degree: 2, pipeline_parallel_schedule: " +
                       std::string(schedule) + "}",
                   "training={micro_batch_size: 2, sequence_length: 24}"});
      const auto plan = MakeUnplacedPlan(spec);
      ASSERT_TRUE(plan.ok()) << plan.status();
      double flops = 0;
      for (int stage = 0; stage < 2; ++stage) {
        const auto options = MakeStageBuildOptions(DecodeJob(spec).value(), *plan, stage);
        const auto program = model::BuildProgram(*options);
        ASSERT_TRUE(program.ok()) << program.status();
        int64_t planned = 0;
        for (size_t index = 0; index < program->chunks.size(); ++index) {
          const auto& chunk = plan->chunks(program->chunks[index].chunk);
          EXPECT_EQ(chunk.pipe_rank(), stage);
          const model::PartFlops part = model::ModelFlops(*program, static_cast<int>(index));
          EXPECT_DOUBLE_EQ(part.forward, chunk.forward_flops());
          flops += part.total() * plan->schedule().microbatches();
          planned += chunk.parameters();
        }
        int64_t parameters = 0;
        for (const auto& entry : program->parameters)
          parameters += program->value(entry.value).elements();
        EXPECT_EQ(parameters, planned);
        EXPECT_EQ(plan->memory(stage).parameter_bytes(), 4 * parameters);
      }
      EXPECT_DOUBLE_EQ(flops, plan->model_flops_per_step());
    }
  }
}

TEST(MakePlanTest, PairsAreInterleavedWhereAStageExchangesSomethingWithinThem) {
  const auto plan_of = [](const std::string& parallelism) {
    return PlanWith({"model={preset: tiny}", "training.global_batch_size=16",
                     "parallelism={pipeline_parallel_degree: 2, " + parallelism + "}"});
  };
  const auto apart = plan_of("pipeline_parallel_schedule: DualPipeV");
  const auto interleaved =
      plan_of("pipeline_parallel_schedule: DualPipeV, tensor_parallel_degree: 2");
  ASSERT_TRUE(apart.ok() && interleaved.ok()) << interleaved.status();
  EXPECT_FALSE(apart->schedule().interleaves_pairs());
  EXPECT_EQ(Json::parse(PlanToJson(*interleaved))["schedule"]["interleaves_pairs"], true);
  EXPECT_THAT(PairsLine(*interleaved),
              HasSubstr("overlapped pairs: the two actions are interleaved"));
  // The results of a pair are sent at its end, and the plan reports that cost.
  EXPECT_GT(interleaved->schedule().bubble_ratio(), apart->schedule().bubble_ratio());
  const auto& peak = interleaved->memory(0).peak();
  EXPECT_THAT(peak[peak.size() - 1], HasSubstr("pairs are interleaved"));
  // Schedules without pairs have none to interleave.
  const auto other = plan_of("pipeline_parallel_schedule: ZBV, tensor_parallel_degree: 2");
  EXPECT_FALSE(other->schedule().interleaves_pairs());
  EXPECT_EQ(PairsLine(*other), "");
}

TEST(MakePlanTest, AVShapedPlanHasBothEndsOnTheFirstStageAndNoTransferWithinTheLast) {
  const auto plan_of = [](const char* schedule) {
    return PlanWith({"model={preset: tiny, tie_word_embeddings: true}",
                     "training.global_batch_size=16",
                     std::string("parallelism={pipeline_parallel_degree: 2, "
                                 "pipeline_parallel_schedule: ") +
                         schedule + "}"});
  };
  const auto plan = plan_of("DualPipeV");
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Json json = Json::parse(PlanToJson(*plan));
  EXPECT_EQ(json["schedule"]["name"], "DualPipeV");
  EXPECT_EQ(json["schedule"]["stages"].dump(), "[[0,3],[1,2]]");
  EXPECT_EQ(json["schedule"]["ranks"][0][7], "F0.3|B3.1");
  EXPECT_EQ(json["schedule"]["peak_live_activations"].dump(), "[5,5]");
  EXPECT_TRUE(json["schedule"]["choice"].empty());
  EXPECT_EQ(json["schedule"]["interleaves_pairs"], false);
  EXPECT_THAT(PairsLine(*plan),
              HasSubstr("overlapped pairs: the two actions run one after the other"));
  EXPECT_THAT(plan->ownership(1), HasSubstr("tied to the head of the same stage"));
  // Two of the three pipeline links cross ranks, each in both directions. Under 1F1B there is one
  // link, over which each rank sends in one direction; here a rank sends one activation and one
  // gradient.
  const auto sent = [](const v1::Plan& plan) {
    double bytes = 0;
    for (const auto& entry : plan.traffic())
      bytes += entry.axis() == "pipe" ? entry.bytes_per_step() : 0;
    return bytes;
  };
  EXPECT_DOUBLE_EQ(sent(*plan), 2 * 16.0 * 256 * 256 * 4);
  // The gradients of a tied matrix on two stages cross too.
  EXPECT_DOUBLE_EQ(sent(*plan_of("GPipe")) - sent(*plan_of("1F1B")), 0);
  // Where I and W are split, the values that W needs of a microbatch outlive I.
  EXPECT_GT(plan->memory(0).saved_bytes(), plan_of("1F1B")->memory(0).saved_bytes());
}

TEST(MakePlanTest, AutoChoosesOnceAndStatesWhy) {
  const auto plan = PlanWith({"model.preset=tiny", "training.global_batch_size=16",
                              "parallelism={pipeline_parallel_degree: 2, "
                              "pipeline_parallel_schedule: auto}"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_NE(plan->schedule().name(), "auto");
  // A line for each schedule, and one for the costs.
  ASSERT_EQ(plan->schedule_choice_size(), std::ssize(kScheduleKinds) + 1);
  EXPECT_THAT(plan->schedule_choice(0),
              ::testing::StartsWith("chosen: " + plan->schedule().name()));
  const auto one = PlanWith({"parallelism.pipeline_parallel_schedule=auto"});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->schedule().name(), "1F1B");
  const auto split =
      PlanWith({"model.preset=tiny",
                "parallelism={pipeline_parallel_degree: 2, pipeline_parallel_schedule: "
                "auto, pipeline_parallel_split_points: [2, 4, 6]}"});
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->chunks_size(), 4);
}

TEST(MakePlanTest, FewerMicrobatchesThanStagesArePlannedAndMentioned) {
  const auto plan =
      PlanWith({"training={global_batch_size: 2}", "parallelism.pipeline_parallel_degree=4"});
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->warnings(0), HasSubstr("2 microbatches are fewer than 4 stages"));
}

TEST(MakePlanTest, AHangLimitBelowTheDefaultIsReportedToHaveNoEffect) {
  const auto warnings = [](const std::string& seconds) {
    const auto plan = PlanWith({"fault_tolerance.hang_seconds=" + seconds});
    EXPECT_TRUE(plan.ok());
    return plan.ok() ? std::vector<std::string>(plan->warnings().begin(), plan->warnings().end())
                     : std::vector<std::string>();
  };
  const auto has_no_effect = HasSubstr("fault_tolerance.hang_seconds = 20 has no effect");
  EXPECT_THAT(warnings("20"), ::testing::Contains(has_no_effect));
  EXPECT_THAT(warnings("200"), ::testing::Not(::testing::Contains(HasSubstr("hang_seconds"))));
}

ClusterDevice XlaDevice(const std::string& worker, const std::string& model) {
  ClusterDevice device{.worker = worker};
  device.device.set_cores(2);
  device.device.mutable_kind()->set_kind("xla");
  device.device.mutable_kind()->set_model(model);
  device.device.mutable_kind()->set_kernel_level(model == "cpu" ? "cpu" : "tpu");
  return device;
}

TEST(MakePlanTest, OptionsOfTheCompilerAreResolvedForTheDevicesThatHaveThem) {
  const v1::JobSpec spec =
      JobWith({"model.preset=tiny", "devices=xla", "xla.option_groups=[sparse_core_offload]"});
  const auto unplaced = MakeUnplacedPlan(spec);
  ASSERT_TRUE(unplaced.ok()) << unplaced.status();
  EXPECT_EQ(unplaced->compiler_options_size(), 0) << "the kind of device is not known yet";
  // Without groups the job would get one of the more frequent devices.
  const ClusterView cluster = {{XlaDevice("a", "TPU v5 lite"), XlaDevice("b", "TPU v5 lite"),
                                XlaDevice("c", "TPU v6 lite")}};
  const auto placed = PlacePlan(spec, *unplaced, cluster);
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(placed->ranks(0).worker(), "c");
  EXPECT_THAT(placed->compiler_options(),
              ::testing::Contains("xla_tpu_use_tc_device_shape_on_sc=true"));
  EXPECT_EQ(placed->compiler_options(0), "xla_allow_excess_precision=false");

  const auto plain = PlacePlan(JobWith({"model.preset=tiny", "devices=xla"}), *unplaced, cluster);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_NE(plain->digest(), placed->digest());

  const Status lacking = PlacePlan(spec, *unplaced, {{XlaDevice("a", "TPU v5 lite")}}).status();
  EXPECT_EQ(lacking.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(lacking), HasSubstr("which devices of kind \"TPU v5 lite\" lack"));
}

TEST(MakePlanTest, TooFewDevicesAreAFailedPrecondition) {
  const v1::JobSpec spec = JobWith({"parallelism.tensor_parallel_degree=4"});
  const auto plan = MakePlan(spec, ImaginedCluster(3, "cpu"));
  EXPECT_EQ(plan.status().code(), StatusCode::kFailedPrecondition);
}

TEST(MakePlanTest, BadJobsAreRefusedWithDetails) {
  v1::JobSpec spec = JobWith({});
  spec.mutable_parallelism()->set_tensor_parallel_degree(3);
  const auto plan = MakeUnplacedPlan(spec);
  EXPECT_EQ(plan.status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(ViolationsOf(plan.status()).empty());
}

TEST(MakePlanTest, TheDigestIsThatOfWhatTheBitsDependOn) {
  const v1::JobSpec spec = JobWith({});
  ClusterView cluster = ImaginedCluster(2, "cpu");
  cluster.free_devices[0].worker = "a";
  cluster.free_devices[1].worker = "b";
  const auto unplaced = MakeUnplacedPlan(spec);
  const auto placed = PlacePlan(spec, *unplaced, cluster);
  EXPECT_NE(placed->digest(), unplaced->digest());
  cluster.free_devices.erase(cluster.free_devices.begin());
  const auto elsewhere = PlacePlan(spec, *placed, cluster);
  EXPECT_EQ(elsewhere->ranks(0).worker(), "b");
  EXPECT_EQ(elsewhere->digest(), placed->digest());
  cluster.free_devices[0].device.mutable_kind()->set_versions("other");
  EXPECT_EQ(PlacePlan(spec, *placed, cluster).status().code(), StatusCode::kFailedPrecondition);
}

TEST(MakePlanTest, TheDigestDistinguishesStagesOfShardingAndMethods) {
  const v1::JobSpec first =
      JobWith({"parallelism.data_parallel_shard_degree=2", "parallelism.zero_stage=1"});
  v1::JobSpec third = first;
  third.mutable_parallelism()->set_zero_stage(3);
  v1::JobSpec bfloat16 = first;
  bfloat16.mutable_training()->set_compute_dtype("bfloat16");
  v1::JobSpec longer = first;
  longer.mutable_training()->set_steps(first.training().steps() + 1);
  const std::string digest = MakeUnplacedPlan(first)->digest();
  EXPECT_NE(MakeUnplacedPlan(third)->digest(), digest);
  EXPECT_NE(MakeUnplacedPlan(bfloat16)->digest(), digest);
  v1::JobSpec dropped = first, with_z_loss = first;
  dropped.mutable_model()->set_hidden_dropout(0.1);
  with_z_loss.mutable_training()->set_z_loss_coef(1e-4);
  EXPECT_NE(MakeUnplacedPlan(dropped)->digest(), digest);
  EXPECT_NE(MakeUnplacedPlan(with_z_loss)->digest(), digest);
  EXPECT_EQ(MakeUnplacedPlan(longer)->digest(), digest);
}

TEST(MakePlanTest, APlanMadeAnewForTheFrozenDeviceHasTheDigestOfTheFirst) {
  const v1::JobSpec spec = JobWith({});
  ClusterView cluster = ImaginedCluster(1, "cpu");
  cluster.free_devices[0].worker = "a";
  const auto first = PlacePlan(spec, *MakeUnplacedPlan(spec), cluster);
  v1::Plan again = *MakeUnplacedPlan(spec);
  *again.mutable_device() = first->device();
  again.set_threads_per_rank(first->threads_per_rank());
  EXPECT_EQ(PlacePlan(spec, again, cluster)->digest(), first->digest());
}

TEST(MakePlanTest, ARankThatNeedsMoreMemoryThanItsHostHasIsWarnedOfOnce) {
  const v1::JobSpec spec = JobWith({});
  ClusterView cluster = ImaginedCluster(1, "cpu");
  cluster.free_devices[0].worker = "a";
  cluster.free_devices[0].host = "h";
  cluster.free_devices[0].device.set_memory_bytes(int64_t{1} << 20);
  const auto small = PlacePlan(spec, *MakeUnplacedPlan(spec), cluster);
  const auto again = PlacePlan(spec, *small, cluster);
  int warned = 0;
  for (const std::string& warning : again->warnings()) {
    if (warning.find("host h: its part of the job, 1 rank, needs ") == std::string::npos) continue;
    EXPECT_THAT(warning, HasSubstr("its free devices have 0.00 GB"));
    ++warned;
  }
  EXPECT_EQ(warned, 1);
  EXPECT_EQ(again->ranks(0).host(), "h");
  cluster.free_devices[0].device.set_memory_bytes(int64_t{1} << 40);
  EXPECT_EQ(PlacePlan(spec, *MakeUnplacedPlan(spec), cluster)->warnings_size(),
            small->warnings_size() - 1);
}

TEST(MakePlanTest, ASmallerLayoutKeepsTheBatchAndTheModelAxes) {
  const v1::JobSpec spec = JobWith({"training.global_batch_size=12",
                                    "parallelism={data_parallel_replicate_degree: 4, "
                                    "tensor_parallel_degree: 2}"});
  EXPECT_EQ(SmallerLayout(spec, 7)->parallelism().data_parallel_replicate_degree(), 3);
  EXPECT_EQ(SmallerLayout(spec, 5)->parallelism().data_parallel_replicate_degree(), 2);
  EXPECT_EQ(SmallerLayout(spec, 100)->parallelism().data_parallel_replicate_degree(), 3);
  EXPECT_FALSE(SmallerLayout(spec, 1).has_value());
  EXPECT_FALSE(SmallerLayout(JobWith({}), 5).has_value());
}

TEST(MakePlanTest, ASmallerLayoutGivesUpReplicasBeforeItShardsOverFewerRanks) {
  const v1::JobSpec spec = JobWith({"training.global_batch_size=12",
                                    "parallelism={data_parallel_replicate_degree: 2, "
                                    "data_parallel_shard_degree: 3, tensor_parallel_degree: 2}"});
  const auto degrees = [&spec](int devices) -> std::string {
    const auto smaller = SmallerLayout(spec, devices);
    if (!smaller) return "none";
    const auto& parallelism = smaller->parallelism();
    EXPECT_EQ(parallelism.has_zero_stage(), parallelism.data_parallel_shard_degree() > 1);
    return fmt::format("{} x {}", parallelism.data_parallel_replicate_degree(),
                       parallelism.data_parallel_shard_degree());
  };
  EXPECT_EQ(degrees(11), "1 x 3");
  EXPECT_EQ(degrees(5), "1 x 2");
  EXPECT_EQ(degrees(3), "1 x 1");
  EXPECT_EQ(degrees(1), "none");
}

TEST(MakePlanTest, AThousandRanksArePlanned) {
  const auto plan = PlanWith({"model.preset=llama-8b",
                              "training={global_batch_size: 1024, sequence_length: 4096}",
                              "parallelism={tensor_parallel_degree: 8, "
                              "pipeline_parallel_degree: 16, data_parallel_replicate_degree: 8}"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->ranks_size(), 1024);
  EXPECT_EQ(Json::parse(PlanToJson(*plan))["ranks"].size(), 1024u);
}

}  // namespace
}  // namespace troupe
