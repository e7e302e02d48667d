#include "plan/validate/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

v1::JobSpec GoodJob() {
  v1::JobSpec spec;
  spec.set_name("a");
  spec.mutable_data()->set_train("/data/x");
  return spec;
}

Status ValidateWith(const std::vector<std::string>& overrides,
                    JobPurpose purpose = JobPurpose::kTrain) {
  v1::JobSpec spec = GoodJob();
  for (const auto& override : overrides) {
    const Status status = ApplyOverride(override, &spec);
    if (!status.ok()) return status;
  }
  ApplyDefaults(&spec);
  return ValidateJobSpec(spec, purpose);
}

TEST(ValidateTest, DefaultsAndPresetsAreValid) {
  EXPECT_TRUE(ValidateWith({}).ok()) << ValidateWith({});
  for (const char* preset : {"tiny", "llama-124m", "llama-1b", "llama-8b"}) {
    const Status status = ValidateWith({fmt::format("model.preset={}", preset)});
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_TRUE(ValidateWith({"parallelism={tensor_parallel_degree: 4, pipeline_parallel_degree: 4, "
                            "data_parallel_replicate_degree: 2}",
                            "model.num_key_value_heads=4"})
                  .ok());
  EXPECT_TRUE(
      ValidateWith({"training.steps=5", "lr_schedule={warmup_steps: 20, decay_type: cosine}"})
          .ok());
}

TEST(ValidateTest, KeysOfAnotherOptimizerAreRefused) {
  const auto refusal = [](const std::vector<std::string>& overrides) {
    const std::vector<Violation> violations = ViolationsOf(ValidateWith(overrides));
    return violations.size() == 1 ? violations[0].field + " " + violations[0].description
                                  : fmt::format("{} violations", violations.size());
  };
  EXPECT_EQ(refusal({"optimizer={name: sgd}"}), "0 violations");
  EXPECT_EQ(refusal({"optimizer={name: sgd, momentum: 0.9, nesterov: true}"}), "0 violations");
  EXPECT_EQ(refusal({"optimizer={name: sgd, nesterov: false}"}), "0 violations");
  EXPECT_EQ(refusal({"optimizer={name: sgd, beta1: 0.9}"}),
            "optimizer.beta1 is 0.9, but optimizer.name is sgd");
  EXPECT_EQ(refusal({"optimizer={name: sgd, beta2: 0.5}"}),
            "optimizer.beta2 is 0.5, but optimizer.name is sgd");
  EXPECT_EQ(refusal({"optimizer={name: sgd, eps: 1}"}),
            "optimizer.eps is 1, but optimizer.name is sgd");
  EXPECT_EQ(refusal({"optimizer={momentum: 0.5}"}),
            "optimizer.momentum is 0.5, but optimizer.name is adamw");
  EXPECT_EQ(refusal({"optimizer={nesterov: true}"}),
            "optimizer.nesterov is true, but optimizer.name is adamw");
  EXPECT_EQ(refusal({"optimizer={name: sgd, nesterov: true}"}),
            "optimizer.nesterov is true, but optimizer.momentum is 0, not above 0");
  EXPECT_THAT(refusal({"optimizer={name: sgd, momentum: 1}"}),
              HasSubstr("optimizer.momentum is 1"));
}

struct Case {
  const char* override;
  const char* field;
  const char* words;
};

TEST(ValidateTest, BlendsAreCheckedEntryByEntry) {
  const auto refusals = [](const std::string& blend) {
    v1::JobSpec spec = GoodJob();
    spec.mutable_data()->clear_train();
    EXPECT_TRUE(ApplyOverride("data.blend=" + blend, &spec).ok());
    ApplyDefaults(&spec);
    std::vector<std::string> lines;
    for (const Violation& violation : ViolationsOf(ValidateJobSpec(spec, JobPurpose::kTrain))) {
      lines.push_back(violation.field + " " + violation.description);
    }
    return lines;
  };
  using ::testing::ElementsAre;
  using ::testing::HasSubstr;
  EXPECT_THAT(refusals("[{path: /x}, {path: /y, weight: 2.5}]"), ElementsAre());
  EXPECT_THAT(
      refusals("[{path: /x, weight: 0}, {weight: -1}, {path: y}]"),
      ElementsAre("data.blend[0].weight is 0, not in (0, ∞)", "data.blend[1].path is required",
                  "data.blend[1].weight is -1, not in (0, ∞)",
                  "data.blend[2].path is y, not an absolute path"));
  EXPECT_THAT(refusals("[{path: /x}, {path: /z}, {path: /x}]"),
              ElementsAre(HasSubstr("data.blend[2].path is /x, the same as data.blend[0].path")));
  EXPECT_THAT(refusals("[{path: /x, weight: 1e7}, {path: /y, weight: 1}]"),
              ElementsAre(HasSubstr("data.blend[1].weight is 1, below 2^-20 of the sum")));
  EXPECT_THAT(refusals("[{path: /x, weight: 1e308}, {path: /y, weight: 1e308}]"),
              ::testing::Contains(HasSubstr("whose sum is not finite")));
  std::string many = "[";
  for (int i = 0; i < 257; ++i) many += fmt::format("{{path: /x{}}},", i);
  EXPECT_THAT(refusals(many + "]"), ElementsAre(HasSubstr("data.blend has 257 entries, above")));
  v1::JobSpec without = GoodJob();
  without.mutable_data()->clear_train();
  ApplyDefaults(&without);
  EXPECT_THAT(std::string(Message(ValidateJobSpec(without, JobPurpose::kTrain))),
              HasSubstr("data.train is required if"));
}

TEST(ValidateTest, EachRelationIsRefusedNamingFieldAndValue) {
  for (
      const Case& c : std::initializer_list<Case>{
          {"name=Bad_Name", "name", "\"Bad_Name\""},
          {"name=-a", "name", "does not match"},
          {"name=", "name", ""},
          {"name=../x", "name", "does not match"},
          {"name=a.b.c", "name", "does not match"},
          {"model.preset=llama-9b", "model.preset", "not one of tiny"},
          {"model.pattern=AZ", "model.pattern", "'Z' at position 2"},
          {"model.pattern=(AM)x2", "model.pattern", "block M"},
          {"model.pattern=(AE)x2", "model.num_experts", "is required"},
          {"model.from=/x", "model.from", "model.pattern is absent"},
          {"model.export_dtype=float8", "model.export_dtype", "\"float8\""},
          {"model.export_config=[1]", "model.export_config", ""},
          {"model.export_config='[1]'", "model.export_config", "not a JSON object"},
          {"model.max_position_embeddings=0", "model.max_position_embeddings", "is 0"},
          {"model.hidden_size=0", "model.hidden_size", "is 0, not in [1, 2^24]"},
          {"model.hidden_size=-4", "model.hidden_size", "is -4"},
          {"model.hidden_size=9223372036854775807", "model.hidden_size",
           "is 9223372036854775807, not in [1, 2^24]"},
          {"checkpoint.interval_seconds=10000000000", "checkpoint.interval_seconds",
           "is 10000000000, not in [0, 3153600000]"},
          {"checkpoint.final_save_seconds=1e300", "checkpoint.final_save_seconds",
           "is 1e+300, not in [0, 3153600000)"},
          {"fault_tolerance.hang_seconds=1e10", "fault_tolerance.hang_seconds",
           "is 10000000000, not in (0, 3153600000)"},
          {"model.num_attention_heads=7", "model.num_attention_heads",
           "is 7, which does not divide model.hidden_size = 256"},
          {"model.num_attention_heads=0", "model.num_attention_heads", "is 0"},
          {"model.num_key_value_heads=3", "model.num_key_value_heads",
           "is 3, which does not divide model.num_attention_heads = 8"},
          {"model.head_dim=31", "model.head_dim", "is 31, not a multiple of 2: RoPE rotates pairs"},
          {"model.norm_eps=0", "model.norm_eps", "is 0"},
          {"model.rope_scaling={rope_type: yarn}", "model.rope_scaling.rope_type", "yarn"},
          {"model.num_experts=8", "model.num_experts", "has no block E"},
          {"data.blend=[{path: /x}]", "data.blend", "has 1 entries, but data.train"},
          {"data.validation_fraction=1", "data.validation_fraction", "is 1"},
          {"data.train=x", "data.train", "not an absolute path"},
          {"data.train=\"/d\\e[2J\"", "data.train",
           "is \"/d\\u001b[2J\", which has the control character U+001B at its byte 3"},
          {"training.steps=0", "training.steps", "is 0, not in [1, 2^40]"},
          {"training.steps=-1", "training.steps", "is -1"},
          {"training.global_batch_size=3", "training.global_batch_size", ""},
          {"training.micro_batch_size=5", "training.global_batch_size",
           "is 16, not a multiple of data_parallel_replicate_degree = 1 times micro_batch_size = "
           "5"},
          {"training.max_norm=-1", "training.max_norm", "is -1"},
          {"training.z_loss_coef=-0.5", "training.z_loss_coef", "is -0.5"},
          {"model.hidden_dropout=1", "model.hidden_dropout", "is 1, not in [0, 1)"},
          {"model.hidden_dropout=-0.1", "model.hidden_dropout", "is -0.1, not in [0, 1)"},
          {"training.compute_dtype=float16", "training.compute_dtype", "\"float16\""},
          {"training.mixed_precision.param=float16", "training.mixed_precision.param",
           "\"float16\""},
          {"training.mixed_precision.reduce=float16", "training.mixed_precision.reduce",
           "\"float16\""},
          {"training.mixed_precision.buffer=float16", "training.mixed_precision.buffer",
           "is \"float16\", not one of float32, bfloat16"},
          {"optimizer.no_weight_decay=[\"*norm.weight\", \"*.bias\"]",
           "optimizer.no_weight_decay[1]", "is \"*.bias\", which matches none of the model's"},
          {"optimizer.no_weight_decay=[\"\", \"*norm.weight\"]", "optimizer.no_weight_decay[0]",
           "which means that every tensor decays; remove it or the 1 other"},
          {"model.trainable=[\"*norm*\", \"*lora*\"]", "model.trainable[1]",
           "is \"*lora*\", which matches none of the model's"},
          {"model.trainable=[\"\"]", "model.trainable[0]", "is \"\", which matches none of the"},
          {"model.trainable=[\"*.q_proj.weight\"]", "model.trainable",
           "matches model.layers.0.self_attn.q_proj.weight but not "
           "model.layers.0.self_attn.k_proj.weight; they are stored as one matrix"},
          {"model.trainable=[\"*norm*\"]", "model.trainable",
           "freezes model.embed_tokens.weight, so model.from or checkpoint.initial_load must"},
          {"training.float8.recipe=fine", "training.float8.recipe", "\"fine\""},
          {"training={compute_dtype: float32, float8: {recipe: delayed}}", "training.float8.recipe",
           "is \"delayed\", but training.compute_dtype is \"float32\", not bfloat16"},
          {"training.on_nonfinite=ignore", "training.on_nonfinite", "\"ignore\""},
          {"training.validation_interval=5", "training.validation_interval", "is 5, but neither"},
          {"optimizer.name=lion", "optimizer.name", "\"lion\""},
          {"optimizer.lr=0", "optimizer.lr", "is 0"},
          {"optimizer.beta2=1", "optimizer.beta2", "is 1, not in [0, 1)"},
          {"lr_schedule.decay_type=step", "lr_schedule.decay_type", "\"step\""},
          {"lr_schedule.decay_ratio=0", "lr_schedule.decay_ratio", "is 0"},
          {"lr_schedule.warmup_steps=-2", "lr_schedule.warmup_steps", "is -2"},
          {"parallelism.tensor_parallel_degree=0", "parallelism.tensor_parallel_degree", "is 0"},
          {"parallelism.tensor_parallel_degree=3", "parallelism.tensor_parallel_degree",
           "is 3, which does not divide model.num_attention_heads = 8"},
          {"parallelism.data_parallel_replicate_degree=3", "training.global_batch_size",
           "data_parallel_replicate_degree = 3"},
          {"parallelism.data_parallel_shard_degree=0", "parallelism.data_parallel_shard_degree",
           "is 0"},
          {"parallelism.data_parallel_shard_degree=3", "training.global_batch_size",
           "data_parallel_shard_degree = 3"},
          {"parallelism={context_parallel_degree: 4, tensor_parallel_degree: 4, "
           "context_parallel_method: all_to_all}",
           "parallelism.context_parallel_degree", "not a multiple of tensor 4 × context 4"},
          {"parallelism.context_parallel_degree=3", "parallelism.context_parallel_degree",
           "not a multiple of 2"},
          {"parallelism.expert_parallel_degree=2", "parallelism.expert_parallel_degree",
           "is 2, but model.pattern = \"(AD)x4\" has no block E"},
          {"parallelism.zero_stage=1", "parallelism.zero_stage",
           "is 1, but parallelism.data_parallel_shard_degree and expert_parallel_degree are 1"},
          {"parallelism.reshard_after_forward=true", "parallelism.reshard_after_forward",
           "is true, but parallelism.zero_stage is 0"},
          {"parallelism={data_parallel_shard_degree: 4, reshard_after_forward: 3}",
           "parallelism.reshard_after_forward", "is 3, which does not divide"},
          {"parallelism.bucket.elements=0", "parallelism.bucket.elements", "is 0"},
          {"parallelism.bucket.padding=0", "parallelism.bucket.padding", "is 0"},
          {"parallelism.pipeline_parallel_degree=9", "parallelism.pipeline_parallel_degree",
           "is 9, but 9 stages × 1 chunks exceed the 8 blocks"},
          {"parallelism={pipeline_parallel_degree: 2, pipeline_parallel_schedule: ZBV, "
           "pipeline_parallel_chunks: 3}",
           "parallelism.pipeline_parallel_schedule", "ZBV needs 2 chunks per stage, not 3"},
          {"parallelism={pipeline_parallel_degree: 8, pipeline_parallel_schedule: ZBV}",
           "parallelism.pipeline_parallel_degree", "8 stages × 2 chunks exceed the 8 blocks"},
          {"parallelism={pipeline_parallel_degree: 3, pipeline_parallel_schedule: Interleaved1F1B}",
           "parallelism.pipeline_parallel_schedule", "16 mod floor(16 / 3) = 16 mod 5 = 1, not 0"},
          {"parallelism.pipeline_parallel_schedule=2F2B", "parallelism.pipeline_parallel_schedule",
           "\"2F2B\""},
          {"parallelism.pipeline_parallel_chunks=2", "parallelism.pipeline_parallel_schedule",
           "1F1B needs 1 chunk per stage, not 2"},
          {"parallelism.pipeline_parallel_chunks=0", "parallelism.pipeline_parallel_chunks",
           "is 0"},
          {"parallelism.pipeline_parallel_split_points=[2]",
           "parallelism.pipeline_parallel_split_points", "has 1 entries"},
          {"parallelism={pipeline_parallel_degree: 3, pipeline_parallel_split_points: [4, 2]}",
           "parallelism.pipeline_parallel_split_points[1]", "is 2, not in (4, 8)"},
          {"activation_recomputation.mode=some", "activation_recomputation.mode", "\"some\""},
          {"activation_recomputation={mode: full, num_layers: 0}",
           "activation_recomputation.num_layers", "0"},
          {"checkpoint.interval=5", "checkpoint.interval", "is 5, but checkpoint.folder"},
          {"checkpoint={folder: c}", "checkpoint.folder", "is c, not an absolute path"},
          {"checkpoint={folder: \"/c\\nworker-9  READY\"}", "checkpoint.folder",
           "is \"/c\\nworker-9  READY\", which has the control character U+000A at its byte 3"},
          {"checkpoint={folder: \"/c\\u202e\"}", "checkpoint.folder",
           "is \"/c\\u202e\", which has the control character U+202E at its byte 3"},
          {"checkpoint.async_mode=sometimes", "checkpoint.async_mode", "\"sometimes\""},
          {"checkpoint.initial_load=x", "checkpoint.initial_load", "is x, not an absolute path"},
          {"fault_tolerance.max_restarts=-1", "fault_tolerance.max_restarts", "is -1"},
          {"fault_tolerance.hang_seconds=0", "fault_tolerance.hang_seconds", "is 0"},
          {"xla.option_groups=[warp]", "xla.option_groups[0]",
           "is \"warp\", not one of fast_compile, scoped_memory_dense, scoped_memory_moe, "},
          {"xla.option_groups=[fast_compile, launch_barrier]", "xla.option_groups",
           "no kind of device has all of these groups; they are TPU v4: "},
          {"xla.option_groups=[scoped_memory_moe, scoped_memory_dense]", "xla.option_groups",
           "which state different values: xla_tpu_scoped_vmem_limit_kib=81920 and "
           "xla_tpu_scoped_vmem_limit_kib=98304"},
          {"xla.options=[--xla_a=1]", "xla.options[0]", "begins with dashes"},
          {"xla.options=[xla_a=1, xla_b]", "xla.options[1]", "is \"xla_b\", which is not NAME="},
          {"xla.options=[xla_a=]", "xla.options[0]", "is not NAME=VALUE"},
          {"xla.options=[=1]", "xla.options[0]", "is not NAME=VALUE"},
          {"xla.options=[\"xla a=1\"]", "xla.options[0]", "letters, digits and _ only"},
          {"xla.options=[xla_a=1, xla_a=2]", "xla.options[1]", "an earlier entry states xla_a"},
          {"xla.options=[xla_cpu_enable_fast_math=true]", "xla.options[0]",
           "but xla_cpu_enable_fast_math is always false: with it, numbers are not exact"},
          {"devices=abacus", "devices", "is \"abacus\", not one of cpu, cuda"}}) {
    std::vector<std::string> overrides = {c.override};
    if (std::string_view(c.override) == "training.global_batch_size=3") {
      overrides.push_back("parallelism.data_parallel_replicate_degree=2");
    }
    const Status status = ValidateWith(overrides);
    ASSERT_FALSE(status.ok()) << c.override;
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.override << ": " << status;
    bool found = false;
    for (const Violation& violation : ViolationsOf(status)) {
      found = found || (violation.field == c.field &&
                        violation.description.find(c.words) != std::string::npos);
    }
    EXPECT_TRUE(found) << c.override << ": " << status;
  }
}

TEST(ValidateTest, Float8IsRefusedOnDevicesWithoutIt) {
  const std::vector<std::string> float8 = {
      "training={compute_dtype: bfloat16, float8: {recipe: delayed}}"};
  EXPECT_TRUE(ValidateWith(float8).ok());
  EXPECT_THAT(Message(ValidateWith({float8[0], "devices=xla"})),
              HasSubstr("training.float8.recipe is \"delayed\", but devices is \"xla\", on which "
                        "FP8 matmuls are not available"));
}

TEST(ValidateTest, OptionsOfCompilersThatAreNotRefusedAreAccepted) {
  for (const char* const accepted :
       {"xla.option_groups=[scoped_memory_dense, sparse_core_offload]",
        "xla.option_groups=[sdc_checker, sdc_checker]",
        "xla.options=[xla_tpu_x=98304, xla_allow_excess_precision=false, 2a_name=a=b]"}) {
    EXPECT_TRUE(ValidateWith({accepted}).ok()) << accepted << ": " << ValidateWith({accepted});
  }
}

TEST(ValidateTest, SchedulesOfTooManyForwardsAreRefusedWithTheRelation) {
  // The size of a schedule, and therefore the cost of a plan, is bounded by limits on microbatches
  // and chunks.
  const auto with = [](int64_t batch, const std::string& parallelism) {
    return ValidateWith({fmt::format("training.global_batch_size={}", batch),
                         "training.micro_batch_size=1", "model.pattern=\"(AD)x8\"",
                         "parallelism=" + parallelism});
  };
  EXPECT_TRUE(with(1 << 17, "{}").ok()) << with(1 << 17, "{}");
  const Status status = with(1 << 19, "{}");
  const auto violations = ViolationsOf(status);
  ASSERT_EQ(violations.size(), 1u) << status;
  EXPECT_EQ(violations[0].field, "training.global_batch_size");
  EXPECT_THAT(
      violations[0].description,
      HasSubstr("524288 microbatches × 1 stages × 1 chunks = 524288 is more than the 131072"));
  EXPECT_TRUE(with(1 << 19, "{data_parallel_replicate_degree: 4}").ok());
  EXPECT_TRUE(
      with(1 << 16, "{pipeline_parallel_degree: 2, pipeline_parallel_schedule: 1F1B}").ok());
  EXPECT_FALSE(
      with(1 << 17, "{pipeline_parallel_degree: 2, pipeline_parallel_schedule: 1F1B}").ok());
  EXPECT_FALSE(
      with(1 << 16, "{pipeline_parallel_degree: 2, pipeline_parallel_schedule: ZBV}").ok());
}

// A ring is a step for each rank of it in each attention block of the program.
TEST(ValidateTest, StagesOfTooManyOperationsAreRefusedWithTheRelation) {
  const auto refusal = [](const std::string& pattern, const std::string& parallelism) {
    return std::string(
        Message(ValidateWith({"training.sequence_length=131072", "model.pattern=" + pattern,
                              "training.global_batch_size=8", "parallelism=" + parallelism})));
  };
  EXPECT_EQ(refusal("(AD)x2048", "{}"), "");
  EXPECT_EQ(refusal("(AD)x64", "{context_parallel_degree: 128}"), "");
  EXPECT_THAT(refusal("AD", "{context_parallel_degree: 65536}"),
              HasSubstr("parallelism.context_parallel_degree"));
  EXPECT_THAT(refusal("(AD)x128", "{context_parallel_degree: 256}"),
              HasSubstr("is 256: 256 blocks × 4 + 128 attention blocks × 255 = 33664 in a stage, "
                        "above the limit of 16384"));
  EXPECT_EQ(refusal("(AD)x128", "{context_parallel_degree: 256, pipeline_parallel_degree: 4}"), "");
}

TEST(ValidateTest, SchedulesAreRefusedForTheirNumberOfMicrobatches) {
  const auto refusal = [](const char* schedule, const char* batch) {
    return std::string(Message(ValidateWith(
        {fmt::format("parallelism={{pipeline_parallel_degree: 2, pipeline_parallel_schedule: {}}}",
                     schedule),
         "model.pattern=(AD)x4", fmt::format("training.global_batch_size={}", batch)})));
  };
  EXPECT_EQ(refusal("DualPipeV", "4"), "");
  EXPECT_THAT(refusal("DualPipeV", "3"), HasSubstr("3 is below 2 × 2 = 4"));
  EXPECT_EQ(refusal("ZBV", "3"), "");
  EXPECT_EQ(refusal("ZBVZeroBubble", "1"), "");
  EXPECT_EQ(refusal("auto", "7"), "");
  EXPECT_EQ(refusal("auto, pipeline_parallel_chunks: 2", "7"), "");
  EXPECT_THAT(refusal("auto, pipeline_parallel_chunks: 3", "7"),
              HasSubstr("is auto, but no schedule can run: GPipe needs 1 chunk per stage, not 3"));
}

TEST(ValidateTest, AllViolationsAreReported) {
  const Status status = ValidateWith(
      {"training.steps=0", "optimizer.lr=-1", "parallelism.context_parallel_degree=3"});
  EXPECT_EQ(ViolationsOf(status).size(), 3u);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
}

TEST(ValidateTest, APlanNeedsNeitherNameNorData) {
  v1::JobSpec spec;
  ApplyDefaults(&spec);
  EXPECT_TRUE(ValidateJobSpec(spec, JobPurpose::kPlan).ok());
  const Status status = ValidateJobSpec(spec, JobPurpose::kTrain);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("name is required"));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("data.train is required"));
}

TEST(ValidateTest, DegreesWhoseProductOverflowsAreRefused) {
  EXPECT_FALSE(ValidateWith({"parallelism={data_parallel_replicate_degree: 65536, "
                             "tensor_parallel_degree: 65536, pipeline_parallel_degree: 65536}"})
                   .ok());
}

TEST(ValidateTest, DegreesThatWouldMakeADivisorZeroAreRefused) {
  for (const char* const parallelism :
       {"{tensor_parallel_degree: 0, sequence_parallel: true, tensor_parallel_parts: 2}",
        "{tensor_parallel_degree: 4294967296, context_parallel_degree: 4294967296, "
        "context_parallel_method: all_to_all}",
        "{tensor_parallel_degree: 288230376151711744, sequence_parallel: true, "
        "tensor_parallel_parts: 64}"}) {
    const auto violations =
        ViolationsOf(ValidateWith({fmt::format("parallelism={}", parallelism)}));
    EXPECT_THAT(violations, ::testing::Contains(::testing::Field(
                                &Violation::field, "parallelism.tensor_parallel_degree")))
        << parallelism;
  }
  const auto violations = ViolationsOf(ValidateWith(
      {"training.micro_batch_size=65536",
       "parallelism={data_parallel_replicate_degree: 65536, data_parallel_shard_degree: 65536, "
       "expert_parallel_degree: 65536}"}));
  EXPECT_THAT(violations, ::testing::Contains(
                              ::testing::Field(&Violation::field, "training.global_batch_size")));
}

TEST(ValidateTest, PartsOfTensorRowsAreRefusedByTheRelationThatFails) {
  struct Case {
    std::vector<std::string> overrides;
    const char* words;
  };
  for (const Case& c : std::initializer_list<Case>{
           {{"parallelism.tensor_parallel_parts=0"}, "is 0, not in [1, 64]"},
           {{"parallelism.tensor_parallel_parts=2"},
            "is 2, but parallelism.tensor_parallel_degree = 1"},
           {{"parallelism={tensor_parallel_degree: 2, tensor_parallel_parts: 7}"},
            "is 7, but the number of rows of a microbatch on a context rank, 256, is not a "
            "multiple of 7 × 1"},
           {{"parallelism={tensor_parallel_degree: 2, sequence_parallel: true, "
             "tensor_parallel_parts: "
             "4}",
             "training.sequence_length=68"},
            "rows of a microbatch on a context rank, 68, is not a multiple of 4 × 2"},
           {{"model.pattern=(AE)x2", "model.num_experts=8", "model.moe_intermediate_size=8",
             "parallelism={tensor_parallel_degree: 2, tensor_parallel_parts: 2}"},
            "whose routers need all rows at once"}}) {
    std::vector<std::string> overrides = {"training.sequence_length=256",
                                          "training.micro_batch_size=1"};
    overrides.insert(overrides.end(), c.overrides.begin(), c.overrides.end());
    EXPECT_THAT(ViolationsOf(ValidateWith(overrides)),
                ::testing::Contains(::testing::AllOf(
                    ::testing::Field(&Violation::field, "parallelism.tensor_parallel_parts"),
                    ::testing::Field(&Violation::description, HasSubstr(c.words)))))
        << c.words;
  }
}

TEST(ValidateTest, AStatedWidthOfAHeadNeedNotDivideTheHiddenSize) {
  const auto heads_of_100 = [](const char* head_dim) {
    return ValidateWith(
        {fmt::format("model={{hidden_size: 100, num_attention_heads: 8{}}}", head_dim)});
  };
  // 100 / 8 = 12.5, rounded down and up.
  const Status below = heads_of_100(", head_dim: 12");
  EXPECT_TRUE(below.ok()) << below;
  EXPECT_THAT(std::string(Message(heads_of_100(", head_dim: 13"))),
              HasSubstr("model.head_dim is 13, not a multiple of 2"));
  EXPECT_THAT(std::string(Message(heads_of_100(""))),
              HasSubstr("model.num_attention_heads is 8, which does not divide model.hidden_size = "
                        "100; state model.head_dim, or a divisor"));
}

TEST(ValidateTest, KeyValueHeadsAreCutOrSharedByTensorRanks) {
  const auto refusals = [](int heads, int tensor, const char* more) {
    std::vector<std::string> lines;
    for (const Violation& violation : ViolationsOf(ValidateWith(
             {"model.hidden_size=768", "model.num_attention_heads=24", "model.intermediate_size=96",
              fmt::format("model.num_key_value_heads={}", heads),
              fmt::format("parallelism.tensor_parallel_degree={}", tensor), more}))) {
      lines.push_back(violation.field + " " + violation.description);
    }
    return lines;
  };
  using ::testing::ElementsAre;
  const char* none = "parallelism.sequence_parallel=true";
  for (const int heads : {1, 2, 4, 8, 24})
    EXPECT_THAT(refusals(heads, 4, none), ElementsAre()) << heads;
  const char* neither =
      "parallelism.tensor_parallel_degree is 6, which does not divide model.num_key_value_heads = "
      "4 and is not a multiple of it";
  EXPECT_THAT(refusals(4, 6, none), ElementsAre(neither));
  EXPECT_THAT(
      refusals(
          2, 4,
          "parallelism={zero_stage: 1, data_parallel_shard_degree: 2, shard_whole_matrices: true}"),
      ::testing::Contains("parallelism.shard_whole_matrices is true, but "
                          "parallelism.tensor_parallel_degree = 4 is above "
                          "model.num_key_value_heads = 2: ranks that share a head would split it "
                          "differently"));
  EXPECT_THAT(
      refusals(2, 4,
               "parallelism={context_parallel_degree: 2, context_parallel_method: all_to_all}"),
      ::testing::Contains(
          "parallelism.context_parallel_degree is 2, but model.num_key_value_heads = 2 is not a "
          "multiple of tensor 4 × context 2: all_to_all gives each rank whole heads "
          "(context_parallel_method: ring does not)"));
}

TEST(ValidateTest, ExpertsAreRefusedByTheRelationThatFails) {
  const std::vector<std::string> good = {"model.pattern=(AE)x2", "model.num_experts=8",
                                         "model.moe_intermediate_size=2",
                                         "parallelism.expert_parallel_degree=4"};
  EXPECT_TRUE(ValidateWith(good).ok()) << ValidateWith(good);
  for (const Case& c : std::initializer_list<Case>{
           {"model.num_experts_per_tok=9", "model.num_experts_per_tok",
            "is 9, above model.num_experts = 8"},
           {"model.num_experts_per_tok=0", "model.num_experts_per_tok", "is 0"},
           {"model.num_experts=6", "parallelism.expert_parallel_degree",
            "is 4, which does not divide model.num_experts = 6"},
           {"model.num_experts=1025", "model.num_experts", "is 1025, not in [1, 1024]"},
           {"model.capacity_factor=0", "model.capacity_factor", "is 0"},
           {"model.capacity_factor=-1.5", "model.capacity_factor", "is -1.5"},
           {"model.router_score=tanh", "model.router_score", "\"tanh\""},
           {"model.router_aux_loss_coef=-1", "model.router_aux_loss_coef", "is -1"},
           {"model.num_shared_experts=-1", "model.num_shared_experts", "is -1"},
           {"training.micro_batch_size=8", "training.global_batch_size",
            "times expert_parallel_degree = 4 times micro_batch_size = 8"},
           {"parallelism.expert_dispatch=broadcast", "parallelism.expert_dispatch",
            "\"broadcast\""},
           {"parallelism.tensor_parallel_degree=2", "parallelism.sequence_parallel",
            "tensor_parallel_degree = 2 with expert_parallel_degree = 4 requires true"},
           {"parallelism={expert_parallel_degree: 2, tensor_parallel_degree: 4, sequence_parallel: "
            "true, expert_tensor_parallel_degree: 2}",
            "parallelism.expert_tensor_parallel_degree", "is 2, must be 1"},
           {"parallelism={expert_parallel_degree: 4, tensor_parallel_degree: 4, sequence_parallel: "
            "true, expert_tensor_parallel_degree: 1}",
            "parallelism.expert_tensor_parallel_degree",
            "num_experts = 8 is not a multiple of expert_parallel_degree 4 × "
            "tensor_parallel_degree 4"},
           {"parallelism={expert_parallel_degree: 1, tensor_parallel_degree: 2, "
            "expert_tensor_parallel_degree: 1}",
            "parallelism.sequence_parallel", "= 1 with tensor_parallel_degree = 2 requires true"},
           {"parallelism={expert_parallel_degree: 1, tensor_parallel_degree: 4}",
            "parallelism.tensor_parallel_degree", "above model.moe_intermediate_size = 2"}}) {
    std::vector<std::string> overrides = good;
    overrides.push_back(c.override);
    const auto violations = ViolationsOf(ValidateWith(overrides));
    EXPECT_THAT(violations, ::testing::Contains(::testing::AllOf(
                                ::testing::Field(&Violation::field, c.field),
                                ::testing::Field(&Violation::description, HasSubstr(c.words)))))
        << c.override;
  }
}

}  // namespace
}  // namespace troupe
