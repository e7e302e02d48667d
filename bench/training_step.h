// One rank's training step (forward, backward, norm, clipping, AdamW) on random tokens, on any
// backend, for benchmarks. Errors end the process.
#ifndef TROUPE_BENCH_TRAINING_STEP_H_
#define TROUPE_BENCH_TRAINING_STEP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/flag_parser.h"
#include "kernels/backend/backend.h"
#include "kernels/backend/program_part.h"
#include "model/blocks/build_options.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"

namespace troupe::bench {

struct StepShape {
  std::string model = "llama-124m";  // a preset
  int64_t batch = 4, sequence = 256;
  std::string dtype = "float32";  // compute dtype: float32 or bfloat16
  int threads = 2;
  std::optional<int> dropout_percent;
  // The length of each document of a sample, which attention does not cross; none: causal.
  std::optional<int64_t> document;
};

// Adds the flags of model, batch, sequence, threads and dtype.
void AddShapeFlags(FlagParser& parser, StepShape* shape);

// The options of the shape's program. REQUIRES: shape.model is a preset.
model::BuildOptions StepOptions(const StepShape& shape);

// The learning rate of every step.
inline constexpr float kStepLearningRate = 3e-4f;

// The tokens of a step, the same in every step.
struct StepTokens {
  std::vector<int32_t> tokens, targets;  // [batch · sequence]
};
StepTokens RandomTokens(const StepShape& shape, int64_t vocabulary);

// Not thread-safe.
class TrainingStep {
 public:
  // Parameters are the initial ones of seed 1. `backend` must outlive the object.
  TrainingStep(kernels::Backend& backend, const StepShape& shape);

  // Runs one step and returns the mean loss before it.
  double Run();

  const model::Program& program() const { return program_; }
  const model::MemoryPlan& plan() const { return plan_; }

 private:
  void Write(model::ValueId value, const void* data, size_t bytes);
  void FillParameters();
  void FillSamples(const StepShape& shape, int64_t vocabulary);

  model::Program program_;
  model::MemoryPlan plan_;
  std::unique_ptr<kernels::Executable> executable_;
  std::vector<int32_t> samples_;  // step and slot of each sample, for dropout
  int step_ = 0;
};

// Times the step's program reduced to the operations that `keep` selects, in separate memory with
// random contents: the median of `runs`.
double SecondsOf(kernels::Backend& backend, const TrainingStep& training, int runs,
                 const kernels::KeepOp& keep);

// Prints the seconds of each kind of operation of a step, one JSON line each; the operations of one
// kind run one after another, alone.
void PrintOperations(kernels::Backend& backend, const TrainingStep& training);

}  // namespace troupe::bench

#endif  // TROUPE_BENCH_TRAINING_STEP_H_
