// Tests models that transformers wrote: our logits, losses and gradient norms equal PyTorch's under
// every layout, and an imported model is exported byte for byte.
//
// tests/interop/make_fixtures.py created the directories and PyTorch's results for them;
// TROUPE_FIXTURES names other directories that it created.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/temporary_directory.h"
#include "interop/export.h"
#include "interop/hf_weights.h"
#include "interop/import.h"
#include "interop/testing.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/testing/program_run.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"
#include "plan/validate/stage_inputs.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

constexpr double kLogitTolerance = 1e-4;  // absolute
constexpr double kTolerance = 1e-5;       // relative, of losses and norms

const char* const kVariants[] = {"tied-grouped-llama3", "untied-older-keys", "bfloat16-sharded"};

std::string Fixtures() {
  const char* others = std::getenv("TROUPE_FIXTURES");
  return others != nullptr ? others : "tests/interop/fixtures";
}

Json Expected(const std::string& variant) {
  return Json::parse(ReadText(fmt::format("{}/{}/expected.json", Fixtures(), variant)));
}

// Returns the variant's job.yaml with its model inlined, as `troupe submit` does.
v1::JobSpec FixtureJob(const std::string& variant, const Layout& layout = {}) {
  const auto job = LoadJobFile(fmt::format("{}/{}/job.yaml", Fixtures(), variant), {});
  TROUPE_CHECK_OK(job.status());
  v1::JobSpec spec = job->spec;
  PosixFileSystem files;
  TROUPE_CHECK_OK(InlineHfModel(files, spec.mutable_model()));
  v1::ParallelismSpec& parallelism = *spec.mutable_parallelism();
  parallelism.set_data_parallel_replicate_degree(layout.data);
  parallelism.set_tensor_parallel_degree(layout.tensor);
  parallelism.set_pipeline_parallel_degree(layout.pipe);
  ApplyDefaults(&spec);
  return spec;
}

// Returns the elements of each tensor by name, as float32, and the format of the files.
std::map<std::string, std::vector<float>> WeightsIn(const std::string& directory,
                                                    NumberFormat* format) {
  PosixFileSystem files;
  const auto source = OpenHfModel(files, directory);
  TROUPE_CHECK_OK(source.status());
  *format = source->weights.format();
  std::map<std::string, std::vector<float>> weights;
  const auto tensors = LlamaTensors(source->model);
  TROUPE_CHECK_OK(tensors.status());
  for (const ModelTensor& tensor : *tensors) {
    std::vector<float>& numbers = weights[tensor.name];
    numbers.resize(static_cast<size_t>(*Elements(tensor.shape)));
    TROUPE_CHECK_OK(source->weights.Read(tensor.name, tensor.shape,
                                         {Extents(tensor.shape.size(), 0), tensor.shape}, numbers));
  }
  return weights;
}

class Variants : public ::testing::TestWithParam<const char*> {
 protected:
  std::string Directory() const { return fmt::format("{}/{}", Fixtures(), GetParam()); }
};

std::string VariantName(const ::testing::TestParamInfo<const char*>& info) {
  std::string name;
  for (const char* c = info.param; *c != '\0'; ++c) {
    if (*c != '-')
      name += c == info.param || c[-1] == '-' ? static_cast<char>(std::toupper(*c)) : *c;
  }
  return name;
}

// Returns the logits of the forward pass. The pass replaces them by the gradient of the loss,
// softmax - [target], and keeps the values that recover them: the softmax denominator, the largest
// logit and the target's logit.
std::vector<double> Logits(kernels::Backend& backend, const std::string& directory,
                           const v1::JobSpec& job, const std::vector<double>& tokens) {
  v1::JobSpec spec = job;
  spec.mutable_training()->set_sequence_length(static_cast<int64_t>(tokens.size()));
  const auto plan = MakeUnplacedPlan(spec);
  TROUPE_CHECK_OK(plan.status());
  const auto options = MakeStageBuildOptions(DecodeJob(spec).value(), *plan, 0);
  TROUPE_CHECK_OK(options.status());
  kernels::ProgramRun run(backend, *options, 1);
  NumberFormat format;
  const auto weights = WeightsIn(directory, &format);
  for (const model::ParameterEntry& entry : run.program().parameters) {
    std::vector<double> numbers = run.Read(entry.value);
    const model::Value& value = run.program().value(entry.value);
    const int64_t width = value.elements() / value.dims[0].local;
    for (const model::ParameterPart& part : entry.parts) {
      const std::vector<float>& whole = weights.at(part.name);
      std::copy(whole.begin(), whole.end(), numbers.begin() + part.row_begin * width);
    }
    run.Write(entry.value, numbers);
  }
  TROUPE_CHECK_OK(run.executable().RunInitialize());
  constexpr size_t kTarget = 0;
  kernels::Microbatch batch{.tokens = tokens};
  for (size_t i = 0; i < tokens.size(); ++i) {
    batch.positions.push_back(static_cast<double>(i));
    batch.targets.push_back(kTarget);
    batch.weights.push_back(1);
  }
  run.Evaluate(batch);
  for (const model::Op& op : run.program().Ops(0, model::Piece::kForward)) {
    if (op.kind != model::OpKind::kSoftmaxStatsAndGrad) continue;
    std::vector<double> logits = run.Read(op.outputs[0]);
    const std::vector<double> max = run.Read(op.outputs[1]), sums = run.Read(op.outputs[2]);
    const size_t rows = tokens.size(), vocabulary = logits.size() / rows;
    for (size_t i = 0; i < logits.size(); ++i) {
      const size_t row = i / vocabulary;
      logits[i] = std::log(logits[i]) + std::log(sums[row]) + max[row];
      if (i % vocabulary == kTarget) logits[i] = sums[rows + row];
    }
    return logits;
  }
  ADD_FAILURE() << "no softmax_stats_and_grad";
  return {};
}

TEST_P(Variants, LogitsAreThoseOfTransformers) {
  const Json expected = Expected(GetParam());
  const v1::JobSpec job = FixtureJob(GetParam());
  const auto cpu = kernels::CpuBackend::Make({.threads = 1});
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  kernels::ReferenceBackend reference;
  for (kernels::Backend* backend :
       std::initializer_list<kernels::Backend*>{cpu->get(), &reference}) {
    const std::vector<double> logits =
        Logits(*backend, Directory(), job, expected["tokens"].get<std::vector<double>>());
    const int64_t vocabulary = job.model().vocab_size();
    ASSERT_EQ(logits.size(), expected["tokens"].size() * vocabulary);
    double largest = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      const double want = expected["logits"][i / vocabulary][i % vocabulary];
      largest = std::max(largest, std::abs(logits[i] - want));
    }
    EXPECT_LE(largest, kLogitTolerance) << backend->kernel_level();
  }
}

TEST(Fixtures, TheScalingOfRotaryEmbeddingsShowsInTheirLogits) {
  const std::string variant = "tied-grouped-llama3";
  const Json expected = Expected(variant);
  v1::JobSpec job = FixtureJob(variant);
  job.mutable_model()->clear_rope_scaling();
  const auto cpu = kernels::CpuBackend::Make({.threads = 1});
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  const std::vector<double> logits =
      Logits(**cpu, Fixtures() + "/" + variant, job, expected["tokens"].get<std::vector<double>>());
  const size_t last = expected["tokens"].size() - 1;
  const double want = expected["logits"][last][0];
  EXPECT_GT(std::abs(logits[last * job.model().vocab_size()] - want), 100 * kLogitTolerance);
}

void ExpectTrainsAsPyTorch(const std::vector<StepResult>& steps, const Json& expected) {
  ASSERT_EQ(steps.size(), 20u);
  EXPECT_NEAR(steps[0].event.loss(), expected["loss"], kTolerance * expected["loss"].get<double>());
  EXPECT_NEAR(steps[0].event.grad_norm(), expected["grad_norm"],
              kTolerance * expected["grad_norm"].get<double>());
  for (size_t i = 0; i < steps.size(); ++i) {
    const double loss = expected["losses"][i];
    EXPECT_NEAR(steps[i].event.loss(), loss, kTolerance * loss) << "step " << i + 1;
  }
  EXPECT_LT(steps.back().event.loss(), steps[0].event.loss() - 1.0) << "nothing was learnt";
}

std::vector<StepResult> RunOrDie(const v1::JobSpec& spec, const TrainOptions& options) {
  TrainResult result = Train(spec, options);
  for (const Status& status : result.statuses) EXPECT_TRUE(status.ok()) << status;
  return result.steps[0];
}

TEST_P(Variants, TwentyStepsAreThoseOfAPyTorchLoopUnderEveryLayout) {
  const Json expected = Expected(GetParam());
  for (const Layout& layout :
       {Layout{1, 1, 1}, Layout{2, 1, 1}, Layout{1, 2, 1}, Layout{1, 1, 4}, Layout{2, 2, 2}}) {
    const v1::JobSpec spec = FixtureJob(GetParam(), layout);
    SCOPED_TRACE(fmt::format("data {} tensor {} pipe {}", layout.data, layout.tensor, layout.pipe));
    ExpectTrainsAsPyTorch(RunOrDie(spec, {.steps = 20}), expected);
  }
}

// The directory may have changed since the job was submitted.
TEST(Fixtures, ARankNamesWhatItCannotRead) {
  const TemporaryDirectory folder;
  v1::JobSpec spec = FixtureJob("untied-older-keys");
  spec.mutable_model()->set_from(folder.Child("gone"));
  TrainResult result = Train(spec, {});
  EXPECT_EQ(result.statuses[0].code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(result.statuses[0]).find("model.from"), std::string_view::npos);
  EXPECT_TRUE(result.steps[0].empty());
  // Another model is at this path now.
  WriteSmallLlama(folder.Child("gone"), false, NumberFormat::kFloat32);
  result = Train(spec, {});
  EXPECT_EQ(result.statuses[0].code(), StatusCode::kInvalidArgument);
  EXPECT_NE(Message(result.statuses[0]).find("model.embed_tokens.weight is [11, 8]"),
            std::string_view::npos)
      << result.statuses[0];
}

TEST_P(Variants, AnImportIsWhatInitialLoadStartsFrom) {
  const TemporaryDirectory folder;
  PosixFileSystem files;
  ASSERT_TRUE(ImportHfModel(files, Directory(), folder.Child("import")).ok());
  const v1::JobSpec spec = FixtureJob(GetParam(), {1, 1, 2});
  const std::vector<StepResult> from = RunOrDie(spec, {.steps = 3});
  const std::vector<StepResult> loaded =
      RunOrDie(spec, {.steps = 3, .restore_path = folder.Child("import")});
  ASSERT_EQ(loaded.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(loaded[i].step, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(loaded[i].event.loss(), from[i].event.loss());
    EXPECT_EQ(loaded[i].event.grad_norm(), from[i].event.grad_norm());
  }
}

void ExpectSameWeights(const std::string& actual, const std::string& expected) {
  NumberFormat actual_format, expected_format;
  const auto a = WeightsIn(actual, &actual_format), e = WeightsIn(expected, &expected_format);
  EXPECT_EQ(actual_format, expected_format);
  ASSERT_EQ(a.size(), e.size());
  for (const auto& [name, numbers] : e) {
    ASSERT_EQ(a.at(name).size(), numbers.size());
    EXPECT_EQ(std::memcmp(a.at(name).data(), numbers.data(), numbers.size() * 4), 0) << name;
  }
}

TEST_P(Variants, ImportThenExportIsBitExactAlsoThroughTheLayoutOfAJob) {
  const TemporaryDirectory folder;
  PosixFileSystem files;
  ASSERT_TRUE(ImportHfModel(files, Directory(), folder.Child("import")).ok());
  const auto exported = ExportHfModel(files, folder.Child("import"), folder.Child("back"));
  ASSERT_TRUE(exported.ok()) << exported.status();
  ExpectSameWeights(folder.Child("back"), Directory());
  if (files.Stat(Directory() + "/model.safetensors", SymbolicLinks::kRefuse).ok()) {
    EXPECT_EQ(ReadText(folder.Child("back/model.safetensors")),
              ReadText(Directory() + "/model.safetensors"));
  }
  // A rate that is 0 in float32 trains nothing: the ranks of another layout save what they read.
  v1::JobSpec spec = FixtureJob(GetParam(), {1, 2, 2});
  spec.mutable_optimizer()->set_lr(1e-60);
  const std::string saved = folder.Child("step-00000001-epoch-1-attempt-1");
  RunOrDie(spec, {.steps = 1, .save_path = saved});
  const auto again = ExportHfModel(files, saved, folder.Child("again"));
  ASSERT_TRUE(again.ok()) << again.status();
  ExpectSameWeights(folder.Child("again"), Directory());
  EXPECT_EQ(ReadText(folder.Child("again/config.json")),
            ReadText(folder.Child("back/config.json")));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Variants, ::testing::ValuesIn(kVariants), VariantName);

}  // namespace
}  // namespace troupe
