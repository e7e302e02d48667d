#include "plan/search/layout_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/testing/test_extent.h"
#include "plan/cost/step_time.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/search/layout_estimate.h"
#include "plan/validate/decoded_job.h"
#include "plan/validate/validate.h"

namespace troupe {
namespace {

constexpr int kLayouts = kInstrumented ? 8 : 100;

// Draws random layouts of one model and random devices, the same in every run.
class Sample {
 public:
  Sample(std::vector<std::string> job, unsigned seed, bool float8 = false, std::string batch = "16")
      : job_(std::move(job)), float8_(float8), batch_(std::move(batch)), random_(seed) {}

  // Checks the bounds of `layouts` valid layouts.
  void Check(int layouts) {
    for (int checked = 0, drawn = 0; checked < layouts; ++drawn) {
      ASSERT_LT(drawn, 100 * layouts) << "hardly any layout is valid";
      const std::vector<std::string> keys = Layout();
      v1::JobSpec spec;
      for (const std::string& key : keys) ASSERT_TRUE(ApplyOverride(key, &spec).ok()) << key;
      ApplyDefaults(&spec);
      if (!ValidateJobSpec(spec, JobPurpose::kPlan).ok()) continue;
      CheckOne(spec, ::testing::PrintToString(keys));
      if (::testing::Test::HasFailure()) return;
      ++checked;
    }
  }

 private:
  void CheckOne(const v1::JobSpec& spec, const std::string& text) {
    const v1::DeviceProfile profile = Profile();
    SCOPED_TRACE(text + profile.ShortDebugString());
    const DecodedJob job = DecodeJob(spec).value();
    const auto peak = PeakFor(spec.training(), profile);
    const auto estimate = EstimateLayout(job, profile);
    ASSERT_TRUE(peak.ok() && estimate.ok() && estimate->time.has_value());
    const LayoutBound least = LayoutBounds(profile, *peak).Of(job);
    EXPECT_LE(least.bytes, estimate->memory_bytes);
    EXPECT_LE(least.seconds, estimate->time->seconds);
    EXPECT_LE(estimate->seconds_at_least, estimate->time->seconds);
    EXPECT_GE(least.bytes, job.trained.globs.empty() ? 1 : 0);
    EXPECT_GT(least.seconds, 0);
  }

  std::vector<std::string> Layout() {
    std::vector<std::string> keys = job_;
    const auto set = [&](const char* key, const std::string& value) {
      keys.push_back(std::string(key) + "=" + value);
    };
    set("training.sequence_length", Of({"32", "64"}));
    set("training.global_batch_size", batch_);
    set("training.micro_batch_size", Of({"1", "2", "4"}));
    set("training.compute_dtype", float8_ ? "bfloat16" : Of({"float32", "bfloat16"}));
    if (float8_) set("training.float8.recipe", Of({"current", "delayed", "blockwise"}));
    if (One(4)) set("training.mixed_precision.reduce", "bfloat16");
    if (One(3)) set("training.mixed_precision.param", Of({"float32", "bfloat16"}));
    set("activation_recomputation.mode", Of({"none", "selective", "full"}));
    if (One(6)) set("activation_recomputation.num_layers", "1");
    set("parallelism.pipeline_parallel_schedule",
        Of({"1F1B", "1F1B", "GPipe", "Interleaved1F1B", "ZBH1", "ZBV", "DualPipeV", "auto"}));
    set("parallelism.pipeline_parallel_degree", Of({"1", "1", "2", "4"}));
    set("parallelism.tensor_parallel_degree", Of({"1", "1", "2", "4"}));
    set("parallelism.context_parallel_degree", Of({"1", "1", "2", "4"}));
    set("parallelism.context_parallel_method", Of({"ring", "ring", "all_to_all"}));
    set("parallelism.expert_parallel_degree", Of({"1", "2"}));
    set("parallelism.data_parallel_replicate_degree", Of({"1", "2"}));
    set("parallelism.sequence_parallel", Of({"true", "false"}));
    if (One(3)) set("parallelism.tensor_parallel_parts", Of({"2", "4"}));
    const std::string shards = Of({"1", "2", "4"});
    set("parallelism.data_parallel_shard_degree", shards);
    // Also over expert alone; refused where expert is 1.
    if (shards != "1" || One(2)) {
      const std::string stage = Of({"1", "2", "3"});
      set("parallelism.zero_stage", stage);
      if (stage == "3" && One(2)) set("parallelism.reshard_after_forward", Of({"false", "2"}));
    }
    return keys;
  }

  // Devices with a random bottleneck.
  v1::DeviceProfile Profile() {
    v1::DeviceProfile profile;
    profile.set_name("drawn");
    profile.set_memory_bytes(int64_t{1} << 50);
    profile.set_float32_flops_per_second(Magnitude(1e9, 1e13));
    profile.set_bfloat16_flops_per_second(Magnitude(1e9, 1e13));
    profile.set_matmul_efficiency(0.7);
    profile.set_attention_efficiency(One(2) ? 0.3 : 0.9);
    profile.set_memory_bytes_per_second(Magnitude(1e8, 1e12));
    profile.set_launch_seconds(One(3) ? 0 : Magnitude(1e-8, 1e-4));
    profile.set_devices_per_island(static_cast<int>(1 + random_() % 8));
    for (v1::LinkProfile* link : {profile.mutable_island(), profile.mutable_fabric()}) {
      link->set_bytes_per_second(Magnitude(1e6, 1e12));
      link->set_latency_seconds(One(3) ? 0 : Magnitude(1e-8, 1e-4));
    }
    profile.set_transfers_need_cores(One(4));
    return profile;
  }

  bool One(unsigned of) { return random_() % of == 0; }
  std::string Of(const std::vector<std::string>& words) { return words[random_() % words.size()]; }
  double Magnitude(double least, double most) {
    const double share = static_cast<double>(random_()) / static_cast<double>(random_.max());
    return least * std::pow(most / least, share);
  }

  const std::vector<std::string> job_;
  const bool float8_;
  const std::string batch_;
  std::mt19937 random_;
};

TEST(LayoutBounds, AreBelowTheEstimatesOfADenseModel) {
  Sample({"model.preset=tiny", "model.pattern=(AD)x8"}, 1).Check(kLayouts);
}

TEST(LayoutBounds, AreBelowTheEstimatesOfADenseModelWhoseMlpsAreWiderThanItsVocabulary) {
  Sample({"model.preset=tiny", "model.pattern=(AD)x4", "model.intermediate_size=2000"}, 7)
      .Check(kLayouts);
}

// The number of tokens is large enough that the update of parameters does not hide the head's time.
TEST(LayoutBounds, AreBelowTheEstimatesOfALargeVocabularyAndALargeBatch) {
  Sample({"model.preset=tiny", "model.pattern=(AD)x2", "model.vocab_size=20001"}, 8,
         /*float8=*/false, "512")
      .Check(kLayouts);
}

TEST(LayoutBounds, AreBelowTheEstimatesOfADenseModelInFloat8) {
  Sample({"model.preset=tiny", "model.pattern=(AD)x8"}, 5, /*float8=*/true).Check(kLayouts);
  Sample({"model.preset=tiny", "model.pattern=(AD)x4", "model.intermediate_size=2000"}, 6,
         /*float8=*/true)
      .Check(kLayouts / 2);
}

TEST(LayoutBounds, AreBelowTheEstimatesOfATiedModelWithNarrowMlps) {
  Sample({"model.preset=tiny", "model.pattern=(AD)x4", "model.tie_word_embeddings=true",
          "model.intermediate_size=16", "model.vocab_size=1000"},
         2)
      .Check(kLayouts);
}

TEST(LayoutBounds, AreBelowTheEstimatesOfAnUnevenPatternWithDropout) {
  Sample({"model.preset=tiny", "model.pattern=AADDADDDADAA", "model.hidden_dropout=0.1",
          "model.vocab_size=4001"},
         3)
      .Check(kLayouts);
}

TEST(LayoutBounds, AreBelowTheEstimatesOfAMixture) {
  Sample({"model.preset=tiny", "model.pattern=(AE)x3(AD)x1", "model.num_experts=4",
          "model.num_experts_per_tok=2", "model.moe_intermediate_size=48"},
         4)
      .Check(kLayouts);
}

TEST(LayoutBounds, AreBelowTheEstimatesOfFrozenModels) {
  for (const char* const trainable : {"[model.norm.weight]", "[\"model.layers.[67].*\"]"}) {
    Sample({"model.preset=tiny", "model.pattern=(AD)x8", "model.vocab_size=20001",
            "checkpoint.initial_load=/c", std::string("model.trainable=") + trainable},
           9)
        .Check(kLayouts / 2);
  }
}

}  // namespace
}  // namespace troupe
