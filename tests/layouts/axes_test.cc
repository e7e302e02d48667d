// Tests every axis of the dense model alone, every pair of axes, and eight layouts of eight ranks:
// samples, losses and norms equal the single rank's. Ranks are threads over loopback, hidden size
// 64.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/layouts/expect_steps.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

v1::JobSpec Job(const Layout& layout) { return SmallJob(layout, SmallDataPrefix(), 20); }

// Returns the steps of a single rank, which runs once per process.
const std::vector<StepResult>& SingleRank() {
  static const std::vector<StepResult> steps = RunOrDie(Job({}));
  return steps;
}

// --- The table of axes. Forms of an axis that communicate differently have separate rows.

struct AxisForm {
  const char* name;
  const char* axis;  // two forms of one axis do not form a pair
  void (*spread)(v1::ParallelismSpec& parallelism, int degree);
};

void ShardUnder(int zero_stage, int degree, v1::ParallelismSpec& parallelism) {
  parallelism.set_data_parallel_shard_degree(degree);
  parallelism.set_zero_stage(zero_stage);
}

void ContextBy(const char* method, int degree, v1::ParallelismSpec& parallelism) {
  parallelism.set_context_parallel_degree(degree);
  parallelism.set_context_parallel_method(method);
}

constexpr AxisForm kForms[] = {
    {"Replicate", "data_replicate",
     [](v1::ParallelismSpec& p, int degree) { p.set_data_parallel_replicate_degree(degree); }},
    {"Zero1", "data_shard", [](v1::ParallelismSpec& p, int degree) { ShardUnder(1, degree, p); }},
    {"Zero2", "data_shard", [](v1::ParallelismSpec& p, int degree) { ShardUnder(2, degree, p); }},
    {"Zero3", "data_shard", [](v1::ParallelismSpec& p, int degree) { ShardUnder(3, degree, p); }},
    {"Zero1Whole", "data_shard",
     [](v1::ParallelismSpec& p, int degree) {
       ShardUnder(1, degree, p);
       p.set_shard_whole_matrices(true);
     }},
    {"Zero3Whole", "data_shard",
     [](v1::ParallelismSpec& p, int degree) {
       ShardUnder(3, degree, p);
       p.set_shard_whole_matrices(true);
     }},
    {"Tensor", "tensor",
     [](v1::ParallelismSpec& p, int degree) { p.set_tensor_parallel_degree(degree); }},
    {"TensorRows", "tensor",
     [](v1::ParallelismSpec& p, int degree) {
       p.set_tensor_parallel_degree(degree);
       p.set_sequence_parallel(true);
     }},
    {"TensorParts", "tensor",
     [](v1::ParallelismSpec& p, int degree) {
       p.set_tensor_parallel_degree(degree);
       p.set_tensor_parallel_parts(2);
     }},
    {"TensorRowsParts", "tensor",
     [](v1::ParallelismSpec& p, int degree) {
       p.set_tensor_parallel_degree(degree);
       p.set_sequence_parallel(true);
       p.set_tensor_parallel_parts(2);
     }},
    {"Ring", "context", [](v1::ParallelismSpec& p, int degree) { ContextBy("ring", degree, p); }},
    {"Exchange", "context",
     [](v1::ParallelismSpec& p, int degree) { ContextBy("all_to_all", degree, p); }},
    {"Pipe", "pipe",
     [](v1::ParallelismSpec& p, int degree) { p.set_pipeline_parallel_degree(degree); }},
};

const AxisForm& Form(const std::string& name) {
  for (const AxisForm& form : kForms) {
    if (form.name == name) return form;
  }
  ADD_FAILURE() << "no form " << name;
  return kForms[0];
}

struct Use {
  std::string form;
  int degree;
};
using Uses = std::vector<Use>;

Uses OneAt(int degree, const AxisForm& form) { return {{form.name, degree}}; }

std::vector<Uses> Alone() {
  std::vector<Uses> table;
  for (const AxisForm& form : kForms) {
    for (const int degree : {2, 4}) table.push_back(OneAt(degree, form));
  }
  return table;
}

std::vector<Uses> Pairs() {
  std::vector<Uses> table;
  for (const AxisForm& first : kForms) {
    for (const AxisForm& second : kForms) {
      if (&first < &second && std::string(first.axis) != second.axis)
        table.push_back({{first.name, 2}, {second.name, 2}});
    }
  }
  return table;
}

std::string NameOf(const ::testing::TestParamInfo<Uses>& info) {
  std::string name;
  for (const Use& use : info.param) name += use.form + std::to_string(use.degree);
  return name;
}

class AxesTable : public ::testing::TestWithParam<Uses> {};

TEST_P(AxesTable, FirstTwentyLossesEqualTheSingleRanks) {
  v1::JobSpec spread = Job({});
  for (const Use& use : GetParam())
    Form(use.form).spread(*spread.mutable_parallelism(), use.degree);
  ExpectClose(RunOrDie(spread), SingleRank());
  EXPECT_LT(SingleRank().back().event.loss(), SingleRank().front().event.loss() - 0.1)
      << "nothing was learnt: the comparison is idle";
}

INSTANTIATE_TEST_SUITE_P(Alone, AxesTable, ::testing::ValuesIn(Alone()), NameOf);
INSTANTIATE_TEST_SUITE_P(Pairs, AxesTable, ::testing::ValuesIn(Pairs()), NameOf);
INSTANTIATE_TEST_SUITE_P(EightRanks, AxesTable,
                         ::testing::Values(Uses{{"Pipe", 2}, {"Zero3", 2}, {"Tensor", 2}},
                                           Uses{{"Pipe", 2}, {"Zero1", 2}, {"TensorRows", 2}},
                                           Uses{{"Ring", 2}, {"Zero3", 2}, {"TensorRows", 2}},
                                           Uses{{"Exchange", 2}, {"Zero2", 2}, {"Tensor", 2}},
                                           Uses{{"Replicate", 2}, {"Zero3", 2}, {"TensorRows", 2}},
                                           Uses{{"Replicate", 2}, {"Ring", 2}, {"Pipe", 2}},
                                           Uses{{"Ring", 4}, {"TensorRows", 2}},
                                           Uses{{"Pipe", 4}, {"Zero2", 2}}),
                         NameOf);

// --- Sequence parallelism: rows between matmuls are sharded over the tensor axis.

v1::JobSpec SequenceJob(const Layout& layout) {
  v1::JobSpec spec = Job(layout);
  spec.mutable_parallelism()->set_sequence_parallel(true);
  return spec;
}

class SequenceLayouts : public ::testing::TestWithParam<std::tuple<int, int, int, bool>> {};

TEST_P(SequenceLayouts, FirstTwentyLossesEqualTheSingleRanks) {
  const auto [data, tensor, pipe, tied] = GetParam();
  v1::JobSpec single = Job({});
  v1::JobSpec spread = SequenceJob({data, tensor, pipe});
  for (v1::JobSpec* spec : {&single, &spread}) {
    // 17 rows are not a multiple of any degree.
    spec->mutable_training()->set_sequence_length(17);
    spec->mutable_model()->set_tie_word_embeddings(tied);
  }
  ExpectClose(RunOrDie(spread), RunOrDie(single));
}

std::string LayoutName(const ::testing::TestParamInfo<SequenceLayouts::ParamType>& info) {
  const auto [data, tensor, pipe, tied] = info.param;
  return fmt::format("Data{}Tensor{}Pipe{}{}", data, tensor, pipe, tied ? "Tied" : "");
}

INSTANTIATE_TEST_SUITE_P(Layouts, SequenceLayouts,
                         ::testing::Combine(::testing::Values(1, 2), ::testing::Values(2, 4),
                                            ::testing::Values(1, 2), ::testing::Bool()),
                         LayoutName);

TEST(SequenceLayouts, PackedRowsAndLargerMicrobatchesChangeNothing) {
  v1::JobSpec single = PackedJob({});
  v1::JobSpec spread = PackedJob({1, 2, 2});
  spread.mutable_parallelism()->set_sequence_parallel(true);
  spread.mutable_training()->set_micro_batch_size(3);
  ExpectClose(RunOrDie(spread), RunOrDie(single));
}

TEST(SequenceLayouts, ShardedParametersChangeNothing) {
  for (const int zero_stage : {1, 2, 3})
    ExpectClose(RunOrDie(SequenceJob({1, 2, 1, 2, zero_stage})), SingleRank());
}

// --- Context parallelism: ranks share samples; each has a head and a tail chunk of their tokens.

v1::JobSpec OverContext(v1::JobSpec spec, int64_t degree, const char* method) {
  spec.mutable_parallelism()->set_context_parallel_degree(degree);
  spec.mutable_parallelism()->set_context_parallel_method(method);
  return spec;
}

constexpr const char* kContextMethods[] = {"ring", "all_to_all"};

class ContextLayouts
    : public ::testing::TestWithParam<std::tuple<const char*, std::tuple<int, Layout>>> {};

TEST_P(ContextLayouts, FirstTwentyLossesEqualTheSingleRanks) {
  const auto& [method, spread_over] = GetParam();
  const auto& [context, layout] = spread_over;
  v1::JobSpec spread = OverContext(Job(layout), context, method);
  spread.mutable_training()->set_micro_batch_size(2);
  ExpectClose(RunOrDie(spread), SingleRank());
}

TEST_P(ContextLayouts, DocumentsOfPackedRowsAreSeenWhole) {
  const auto& [method, spread_over] = GetParam();
  const auto& [context, layout] = spread_over;
  ExpectClose(RunOrDie(OverContext(PackedJob(layout), context, method)), RunOrDie(PackedJob({})));
}

std::string ContextName(const ::testing::TestParamInfo<ContextLayouts::ParamType>& info) {
  const auto& [method, spread_over] = info.param;
  const auto& [context, layout] = spread_over;
  return fmt::format("{}{}Data{}Tensor{}Pipe{}",
                     std::string(method) == "ring" ? "Ring" : "Exchange", context, layout.data,
                     layout.tensor, layout.pipe);
}

INSTANTIATE_TEST_SUITE_P(Layouts, ContextLayouts,
                         ::testing::Combine(::testing::ValuesIn(kContextMethods),
                                            ::testing::Values(std::tuple(2, Layout{1, 1, 1}),
                                                              std::tuple(4, Layout{1, 1, 1}),
                                                              std::tuple(2, Layout{2, 1, 1}),
                                                              std::tuple(2, Layout{1, 2, 1}),
                                                              std::tuple(2, Layout{1, 1, 2}),
                                                              std::tuple(4, Layout{1, 1, 2}))),
                         ContextName);

TEST(ContextLayouts, WithSequenceParallelismAndTiedTablesNothingChanges) {
  for (const char* method : kContextMethods) {
    v1::JobSpec single = Job({});
    v1::JobSpec spread = OverContext(SequenceJob({1, 2, 2}), 2, method);
    for (v1::JobSpec* spec : {&single, &spread})
      spec->mutable_model()->set_tie_word_embeddings(true);
    ExpectClose(RunOrDie(spread), RunOrDie(single));
  }
}

TEST(ContextLayouts, ShardedParametersChangeNothing) {
  for (const char* method : kContextMethods) {
    for (const int zero_stage : {1, 2, 3}) {
      ExpectClose(RunOrDie(OverContext(Job({1, 1, 1, 2, zero_stage}), 2, method)), SingleRank());
    }
  }
}

TEST(ContextLayouts, RingsGoWithRecomputationAndEverySplitOfTheBackwardPass) {
  for (const char* mode : {"selective", "full"}) {
    v1::JobSpec spread = OverContext(Job({1, 1, 2}), 2, "ring");
    spread.mutable_activation_recomputation()->set_mode(mode);
    spread.mutable_parallelism()->set_pipeline_parallel_schedule("ZBH1");
    ExpectClose(RunOrDie(spread), SingleRank());
  }
}

TEST(ContextLayouts, HeldOutLossIsTheSingleRanks) {
  v1::JobSpec single = SmallJob({}, SmallDataPrefix(), 4);
  single.mutable_data()->set_validation_fraction(0.1);
  const std::vector<StepResult> expected = RunOrDie(single, {.steps = 4});
  const std::vector<StepResult> actual = RunOrDie(OverContext(single, 2, "ring"), {.steps = 4});
  EXPECT_NEAR(actual.back().event.validation_loss(), expected.back().event.validation_loss(), 1e-5);
}

}  // namespace
}  // namespace troupe
