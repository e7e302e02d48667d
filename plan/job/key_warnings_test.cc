#include "plan/job/key_warnings.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/testing/test_extent.h"
#include "model/program/program.h"
#include "plan/cost/stage_cost.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/job/key_effects.h"
#include "plan/job/key_path.h"
#include "plan/job/key_schema.h"
#include "plan/make_plan.h"
#include "plan/schedules/schedules.h"

namespace troupe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using ::testing::HasSubstr;

// Keys with an effect on neither plan nor programs, and what they affect instead. For those that
// can be without effect the named tests check the rule. A key that every job of Jobs refuses or
// reports is not among them: NoKeyIsWithoutEffectInSilence checks it.
const std::map<std::string, std::string> kElsewhere = {
    {"name", "of the job"},
    {"priority", "the queue"},
    {"model.preset", "the defaults of the other keys of model"},
    {"model.from", "what the model begins with"},
    {"model.max_position_embeddings", "exports, and a warning"},
    {"model.export_dtype", "exports"},
    {"model.export_config", "exports"},
    {"data.train", "which samples"},
    {"data.validation", "which samples are validated with"},
    {"data.validation_fraction", "which samples are trained on"},
    {"data.blend.path", "which samples"},
    {"data.blend.weight", "which samples; EachConditionalKeyIsNamedWhereItHasNoEffect"},
    {"training.steps", "when training ends"},
    {"training.seed", "initial weights, samples and what is dropped"},
    {"model.initializer_range",
     "initial weights, tested by initialize_test; EachConditionalKeyIsNamedWhereItHasNoEffect"},
    {"training.norms_interval", "reports; EachConditionalKeyIsNamedWhereItHasNoEffect"},
    {"training.on_nonfinite", "what follows a step that is not finite"},
    {"optimizer.no_weight_decay",
     "which tensors decay, tested by weight_decay_test; "
     "EachConditionalKeyIsNamedWhereItHasNoEffect"},
    {"optimizer.lr", "the rate of a step, tested by learning_rate_test"},
    {"lr_schedule.warmup_steps", "the rate of a step, tested by learning_rate_test"},
    {"lr_schedule.decay_type", "the rate of a step, tested by learning_rate_test"},
    {"checkpoint.folder", "where commits are"},
    {"checkpoint.interval", "when commits are made; EachConditionalKeyIsNamedWhereItHasNoEffect"},
    {"checkpoint.interval_seconds",
     "when commits are made; EachConditionalKeyIsNamedWhereItHasNoEffect"},
    {"checkpoint.final_save_seconds",
     "for how long the final save is retried; EachConditionalKeyIsNamedWhereItHasNoEffect"},
    {"checkpoint.keep_latest_k", "retention; EachConditionalKeyIsNamedWhereItHasNoEffect"},
    {"checkpoint.keep_every_n_steps", "retention; EachConditionalKeyIsNamedWhereItHasNoEffect"},
    {"checkpoint.initial_load", "what training begins with"},
    {"fault_tolerance.max_restarts", "recovery"},
    {"fault_tolerance.allow_layout_change",
     "recovery; EachConditionalKeyIsNamedWhereItHasNoEffect"},
};

v1::JobSpec Stated(const std::vector<std::string>& overrides) {
  v1::JobSpec spec;
  for (const std::string& override : overrides) {
    const Status status = ApplyOverride(override, &spec);
    EXPECT_TRUE(status.ok()) << override << ": " << ToString(status);
  }
  return spec;
}

v1::JobSpec Completed(v1::JobSpec spec) {
  ApplyDefaults(&spec);
  return spec;
}

const std::vector<std::string> kSmall = {
    "model={hidden_size: 32, num_attention_heads: 4, num_key_value_heads: 4, intermediate_size: "
    "64, vocab_size: 67}",
    "training={sequence_length: 16, global_batch_size: 16, micro_batch_size: 2, steps: 50}"};

v1::JobSpec Small(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), kSmall.begin(), kSmall.end());
  return Stated(overrides);
}

// A set of jobs in which every key has an effect in some job, and no effect in another if that is
// possible.
std::map<std::string, v1::JobSpec> Jobs() {
  const char* const dense = "model.pattern=(AD)x2";
  const char* const sparse = "model={pattern: (AE)x2, num_experts: 4, moe_intermediate_size: 32}";
  return {
      {"one rank", Small({dense})},
      {"tensor", Small({dense, "parallelism.tensor_parallel_degree=2"})},
      {"pipe", Small({dense, "parallelism.pipeline_parallel_degree=2"})},
      {"data", Small({dense, "parallelism.data_parallel_replicate_degree=2"})},
      {"shards", Small({dense, "parallelism.data_parallel_shard_degree=2"})},
      {"shards of the optimizer",
       Small({dense, "parallelism={data_parallel_shard_degree: 2, zero_stage: 1}"})},
      {"rows over tensor",
       Small({dense, "parallelism={tensor_parallel_degree: 2, sequence_parallel: true}"})},
      {"context", Small({dense, "parallelism.context_parallel_degree=2"})},
      {"experts", Small({sparse})},
      {"spread experts", Small({sparse, "parallelism.expert_parallel_degree=2"})},
      {"all experts", Small({sparse, "model.num_experts_per_tok=4"})},
      {"experts alone",
       Small({"model={pattern: EE, num_experts: 4}", "training.compute_dtype=bfloat16"})},
      {"bfloat16", Small({dense, "training.compute_dtype=bfloat16"})},
      {"recomputation", Small({dense, "activation_recomputation.mode=full"})},
      {"scaled positions", Small({dense, "model.rope_scaling={rope_type: llama3}"})},
      {"sgd", Small({dense, "optimizer.name=sgd"})},
      {"sgd with momentum", Small({dense, "optimizer={name: sgd, momentum: 0.25}"})},
      {"no checkpoints", Small({dense, "checkpoint.folder=\"\""})},
  };
}

// Appends the operations that the program runs; a collective of one rank is none.
void AddOperations(const model::Program& program, std::string* text) {
  const auto add = [&](const std::vector<model::Op>& ops) {
    for (const model::Op& op : ops) {
      const auto* group = model::FindCollective(op.attributes);
      if (group != nullptr && model::GroupSize(program.mesh, group->group) == 1) continue;
      *text += model::ToText(op, program) + "\n";
    }
  };
  for (const auto& pieces : program.ops) {
    for (const auto& ops : pieces) add(ops);
  }
  add(program.update);
  add(program.initialize);
}

// Returns `text` with its values numbered in the order of first appearance, because equal
// operations may have created their values in another order.
std::string Renumbered(const std::string& text) {
  std::map<std::string, size_t> numbers;
  std::string renumbered;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text[at] == '%' ? text.find_first_not_of("0123456789", at + 1) : at;
    const std::string name = text.substr(at, end - at);
    if (name.size() > 1) {
      renumbered += fmt::format("%{}", numbers.emplace(name, numbers.size()).first->second);
      at = end;
    } else {
      renumbered += text[at++];
    }
  }
  return renumbered;
}

// Returns `text` with consecutive waits in one order: all of them complete before the next
// operation.
std::string WithSortedWaits(const std::string& text) {
  std::string sorted;
  std::set<std::string> waits;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("wait(")) {
      waits.insert(line);
      continue;
    }
    for (const std::string& wait : waits) sorted += wait + "\n";
    waits.clear();
    sorted += line + "\n";
  }
  for (const std::string& wait : waits) sorted += wait + "\n";
  return sorted;
}

// Everything that the planner makes from a job except texts about it, and the operations of its
// ranks; none where the job is refused.
std::optional<std::string> MadeOf(const v1::JobSpec& spec, std::vector<std::string>* warnings) {
  auto plan = MakeUnplacedPlan(spec);
  if (!plan.ok()) return std::nullopt;
  warnings->assign(plan->warnings().begin(), plan->warnings().end());
  std::string made;
  for (int stage = 0; stage < plan->mesh().pipe(); ++stage) {
    const auto program = BuildStage(DecodeJob(spec).value(), *plan, stage);
    if (!program.ok()) return std::nullopt;
    AddOperations(*program, &made);
  }
  for (const char* field : {"warnings", "digest", "cannot_fix", "bucket", "data"}) {
    ClearKey(field, &*plan);
  }
  return WithSortedWaits(Renumbered(made)) + plan->SerializeAsString();
}

// Values to try; most keys refuse most of them.
std::vector<std::string> ValuesFor(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return {"true", "false"};
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return {"0.5", "2.0"};
    case FieldDescriptor::CPPTYPE_STRING: {
      std::vector<std::string> values = WordsOf(field);
      if (field.name() == "pipeline_parallel_schedule") {
        for (const ScheduleKind kind : kScheduleKinds) values.emplace_back(Name(kind));
      }
      // A number or a truth value would otherwise not be a text.
      for (std::string& value : values) value = fmt::format("\"{}\"", value);
      for (const char* other : {"\"true\"", "\"false\"", "(AD)x3", "llama3"})
        values.emplace_back(other);
      return values;
    }
    default:
      if (field.is_repeated()) return {"[1]"};
      return {"1", "2", "8", "96"};
  }
}

void ForEachLeaf(const Descriptor& type, const std::string& prefix,
                 const std::function<void(const std::string&, const FieldDescriptor&)>& visit) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* const field = type.field(i);
    const std::string path = prefix + field->name();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      ForEachLeaf(*field->message_type(), path + ".", visit);
    } else {
      visit(path, *field);
    }
  }
}

bool Names(const std::vector<std::string>& warnings, const std::string& path) {
  for (const std::string& line : warnings) {
    // plan/text/precision_words.h has its own sentences.
    const bool names = line.starts_with(path + " = ") || line.starts_with(path + " is ");
    if (names && line.find("has no effect") != std::string::npos) return true;
  }
  return false;
}

bool IsDefault(const v1::JobSpec& spec, const std::string& path) {
  v1::JobSpec without = spec;
  ClearKey(path, &without);
  ApplyDefaults(&without);
  return KeyText(without, path) == KeyText(spec, path);
}

// Sets `path` in `job` to every accepted value: each must change something or be reported.
void TryKey(const v1::JobSpec& job, const std::string& path, const FieldDescriptor& field) {
  std::vector<std::string> warnings;
  const auto before = MadeOf(Completed(job), &warnings);
  ASSERT_TRUE(before.has_value());
  std::vector<std::string> unnamed;
  for (const std::string& value : ValuesFor(field)) {
    v1::JobSpec stated = job;
    ClearKey(path, &stated);
    if (!ApplyOverride(path + "=" + value, &stated).ok()) continue;
    const v1::JobSpec spec = Completed(stated);
    const auto after = MadeOf(spec, &warnings);
    if (!after.has_value()) continue;
    const bool named = Names(warnings, path);
    if (*after != *before) {
      EXPECT_FALSE(named) << path << " = " << value
                          << " has an effect but is reported to have none";
      return;
    }
    if (!named && !IsDefault(spec, path) && KeyText(spec, path) != KeyText(Completed(job), path)) {
      unnamed.push_back(value);
    }
  }
  EXPECT_THAT(unnamed, testing::IsEmpty()) << path << " has no effect, and no warning names it";
}

TEST(KeyWarningsTest, NoKeyIsWithoutEffectInSilence) {
  // Every job runs the same code; which keys have an effect in which job does not depend on the
  // build.
  int number = 0;
  for (const auto& [name, job] : Jobs()) {
    if (kInstrumented && number++ % 4 != 0) continue;
    SCOPED_TRACE(name);
    ForEachLeaf(*v1::JobSpec::descriptor(), "",
                [&, &job = job](const std::string& path, const auto& field) {
                  // Keys of kElsewhere change neither plan nor operations.
                  if (!kElsewhere.contains(path)) TryKey(job, path, field);
                });
  }
}

TEST(KeyWarningsTest, KeysThatActElsewhereAreKeys) {
  std::set<std::string> leaves;
  ForEachLeaf(*v1::JobSpec::descriptor(), "",
              [&](const std::string& path, const auto&) { leaves.insert(path); });
  for (const auto& [path, where] : kElsewhere) EXPECT_TRUE(leaves.contains(path)) << path;
}

struct WarningCase {
  const char* path;
  const char* value;
  std::vector<std::string> idle;       // a job in which it has no effect
  std::vector<std::string> effective;  // a job in which it has one
};

TEST(KeyWarningsTest, EachConditionalKeyIsNamedWhereItHasNoEffect) {
  const std::string folder = "checkpoint.folder=/c", none = "checkpoint.folder=\"\"";
  const std::vector<WarningCase> cases = {
      {"data.blend.weight",
       "",
       {"data.blend=[{path: /a, weight: 3}]"},
       {"data.blend=[{path: /a, weight: 3}, {path: /b}]"}},
      {"model.initializer_range",
       "0.5",
       {"model={from: /m, pattern: AD, head_dim: 8, tie_word_embeddings: false, rope_theta: 1e4, "
        "norm_eps: 1e-5}"},
       {}},
      {"training.validation_samples", "64", {}, {"data.validation=/v"}},
      {"training.norms_interval", "51", {}, {"training.steps=60"}},
      {"optimizer.no_weight_decay", "[\"*norm*\"]", {"optimizer.weight_decay=0"}, {}},
      {"lr_schedule.decay_steps", "40", {}, {"lr_schedule.decay_type=cosine"}},
      {"lr_schedule.decay_steps",
       "40",
       {"lr_schedule.decay_type=inverse_sqrt"},
       {"lr_schedule.decay_type=wsd"}},
      {"lr_schedule.decay_ratio",
       "0.1",
       {"lr_schedule.decay_type=cosine"},
       {"lr_schedule.decay_type=wsd"}},
      {"lr_schedule.min_lr_factor", "0.1", {}, {"lr_schedule.decay_type=inverse_sqrt"}},
      {"parallelism.context_parallel_method",
       "ring",
       {},
       {"parallelism.context_parallel_degree=2"}},
      {"parallelism.bucket.elements",
       "1000",
       {"parallelism={data_parallel_shard_degree: 2, zero_stage: 1}"},
       {"parallelism={data_parallel_shard_degree: 2, data_parallel_replicate_degree: 2}",
        "parallelism.zero_stage=1"}},
      {"parallelism.bucket.elements",
       "1000",
       {"parallelism={tensor_parallel_degree: 2, sequence_parallel: true}"},
       {"parallelism={tensor_parallel_degree: 2, sequence_parallel: true}",
        "parallelism.data_parallel_replicate_degree=2"}},
      {"parallelism.bucket.padding",
       "128",
       {"parallelism={tensor_parallel_degree: 2, sequence_parallel: true}"},
       {"parallelism={tensor_parallel_degree: 2, sequence_parallel: true}",
        "parallelism.data_parallel_replicate_degree=2"}},
      {"parallelism.bucket.padding",
       "128",
       {"parallelism.data_parallel_shard_degree=2"},
       {"parallelism.data_parallel_replicate_degree=2"}},
      {"parallelism.bucket.padding",
       "128",
       {"parallelism={data_parallel_shard_degree: 2, data_parallel_replicate_degree: 2, "
        "zero_stage: 1}"},
       {"parallelism={data_parallel_shard_degree: 2, data_parallel_replicate_degree: 2, "
        "zero_stage: 2}"}},
      {"activation_recomputation.num_layers", "1", {}, {"activation_recomputation.mode=full"}},
      {"checkpoint.interval", "60", {folder}, {folder, "training.steps=60"}},
      {"checkpoint.keep_latest_k", "3", {none}, {folder}},
      {"checkpoint.keep_every_n_steps", "10", {folder, "checkpoint.keep_latest_k=0"}, {folder}},
      {"checkpoint.keep_every_n_steps", "60", {folder}, {folder, "training.steps=60"}},
      {"checkpoint.async_mode", "async", {none}, {folder}},
      {"checkpoint.interval_seconds", "90", {none}, {folder}},
      {"checkpoint.interval_seconds", "90", {folder, "checkpoint.interval=10"}, {}},
      {"checkpoint.final_save_seconds", "90", {none}, {folder}},
      {"checkpoint.final_save_seconds", "600", {none}, {}},
      {"fault_tolerance.allow_layout_change",
       "true",
       {},
       {"parallelism.data_parallel_replicate_degree=2"}},
      {"xla.option_groups", "[sdc_checker]", {}, {"devices=xla"}},
      {"xla.options", "[xla_of_somebody=1]", {"devices=cuda"}, {"devices=xla"}},
  };
  for (const WarningCase& each : cases) {
    SCOPED_TRACE(each.path);
    for (const bool idle : {true, false}) {
      v1::JobSpec spec = Small(idle ? each.idle : each.effective);
      if (*each.value != '\0') {
        ASSERT_TRUE(ApplyOverride(fmt::format("{}={}", each.path, each.value), &spec).ok());
      }
      ApplyDefaults(&spec);
      EXPECT_EQ(Names(KeyWarnings(spec), each.path), idle);
      const auto plan = MakeUnplacedPlan(spec);
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(Names({plan->warnings().begin(), plan->warnings().end()}, each.path), idle);
    }
  }
}

TEST(KeyWarningsTest, DefaultsAreNotNamed) {
  for (const std::vector<std::string>& stated : std::vector<std::vector<std::string>>{
           {},
           {"model.preset=llama-8b"},
           {"model={preset: tiny, pattern: (AE)x2, num_experts: 4}"},
           {"model={pattern: EE, num_experts: 4}"},
           {"parallelism={tensor_parallel_degree: 2, context_parallel_degree: 2}"},
           {"training.mixed_precision={reduce: float32}"},
           {"checkpoint.folder=\"\""}}) {
    EXPECT_THAT(KeyWarnings(Completed(Stated(stated))), testing::IsEmpty())
        << fmt::format("{}", fmt::join(stated, " "));
  }
}

TEST(KeyWarningsTest, ANumberOfCommitsThatIsLiftedIsNamed) {
  const auto lines = [](const std::string& kept) {
    return KeyWarnings(Completed(Stated({"checkpoint={folder: /c, keep_latest_k: " + kept + "}"})));
  };
  EXPECT_THAT(lines("1"), testing::ElementsAre(
                              HasSubstr("checkpoint.keep_latest_k = 1 has no effect below 2")));
  EXPECT_THAT(lines("0"), testing::IsEmpty());
  EXPECT_THAT(lines("2"), testing::IsEmpty());
}

}  // namespace
}  // namespace troupe
