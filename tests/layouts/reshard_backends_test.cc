// A checkpoint continues on every backend, whichever wrote it, also under another layout. Each case
// is one source, which trains and saves once; every target resumes from its checkpoint. The GPU is
// emulated. Without XLA's CPU plugin its cases are skipped with the reason.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/temporary_directory.h"
#include "base/testing/test_extent.h"
#include "kernels/cuda/emulated/emulated_backend.h"
#include "kernels/xla/runtime/xla_backend.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/xla_programs.h"

namespace troupe {
namespace {

constexpr int64_t kStepsBefore = 2;
constexpr int64_t kStepsAfter = 2;

enum class BackendKind : uint8_t { kCpu, kCuda, kXla };

struct Case {
  const char* name;
  BackendKind backend;
  Layout layout;
};

constexpr Case kCases[] = {
    {"CpuOne", BackendKind::kCpu, {}},
    {"CpuZero3Shard2Tensor2", BackendKind::kCpu, {.tensor = 2, .shard = 2, .zero_stage = 3}},
    {"CudaOne", BackendKind::kCuda, {}},
    {"CudaPipe2", BackendKind::kCuda, {.pipe = 2}},
    {"XlaOne", BackendKind::kXla, {}},
    {"XlaTensor2Pipe2", BackendKind::kXla, {.tensor = 2, .pipe = 2}},
    {"XlaZero3Shard4", BackendKind::kXla, {.shard = 4, .zero_stage = 3}},
};

void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

v1::JobSpec JobOf(const Case& each) {
  v1::JobSpec spec = SmallJob(each.layout, SmallDataPrefix(), kStepsBefore + kStepsAfter);
  spec.mutable_model()->set_pattern("AD");
  spec.mutable_training()->set_global_batch_size(4);
  spec.mutable_lr_schedule()->set_decay_type("cosine");
  return spec;
}

TrainOptions OptionsOf(const Case& each, int64_t steps) {
  TrainOptions options;
  options.steps = steps;
  if (each.backend == BackendKind::kCuda) {
    options.control_lag_steps = 1;
    options.make_backend = [](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
      return std::make_unique<kernels::EmulatedBackend>();
    };
  }
  if (each.backend == BackendKind::kXla) {
    options.make_backend = [](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
      TROUPE_ASSIGN_OR_RETURN(kernels::xla::ProgramCache* const programs, XlaPrograms());
      return kernels::xla::XlaBackend::Make(*programs, {});
    };
  }
  return options;
}

class ReshardBackends : public testing::TestWithParam<Case> {};

TEST_P(ReshardBackends, GoOnOnEveryBackend) {
  const Case& source = GetParam();
  const Status plugin = XlaPrograms().status();
  if (source.backend == BackendKind::kXla && !plugin.ok()) GTEST_SKIP() << ToString(plugin);
  const TemporaryDirectory folder;
  const std::string attempt = folder.Child("step-00000002-epoch-1-attempt-1");
  TrainOptions first = OptionsOf(source, kStepsBefore);
  first.save_path = attempt;
  RunOrDie(JobOf(source), first);

  static const std::vector<StepResult> whole =
      RunOrDie(JobOf(kCases[0]), {.steps = kStepsBefore + kStepsAfter});
  const std::vector<StepResult> expected(whole.begin() + kStepsBefore, whole.end());
  for (const Case& target : kCases) {
    if (target.backend == BackendKind::kXla && !plugin.ok()) continue;
    SCOPED_TRACE(target.name);
    TrainOptions second = OptionsOf(target, kStepsAfter);
    second.restore_path = attempt;
    ExpectClose(RunOrDie(JobOf(target), second), expected);
  }
}

// A sanitizer makes compilation several times slower.
INSTANTIATE_TEST_SUITE_P(From, ReshardBackends,
                         kInstrumented ? testing::ValuesIn({kCases[0], kCases[5]})
                                       : testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace troupe
