// A training step that is one StableHLO module of another framework, run by the same plugin on the
// same tokens and initial parameters as TrainingStep.
#ifndef TROUPE_BENCH_MODULE_STEP_H_
#define TROUPE_BENCH_MODULE_STEP_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/training_step.h"
#include "kernels/xla/pjrt/client.h"

namespace troupe::bench {

// One argument of a module.
struct ModuleArgument {
  model::DType dtype = model::DType::kFloat32;
  std::vector<int64_t> dims;
  // parameter, transposed (a parameter [out, in] as [in, out]), zeros, tokens or targets.
  std::string contents;
  // Hugging Face names of parameters, whose rows follow each other.
  std::vector<std::string> names;
};

// Parses one line for each argument, such as "f32 768,2304 transposed NAME+NAME". Errors:
// INVALID_ARGUMENT, which names the line.
StatusOr<std::vector<ModuleArgument>> ParseModuleArguments(std::string_view text);

// The first results of the module replace its parameters and zeros, in the order of the arguments;
// the next result is the loss, a float32. Not thread-safe.
class ModuleStep {
 public:
  // Errors: those of the plugin; INVALID_ARGUMENT, which names a parameter that the model has not.
  static StatusOr<std::unique_ptr<ModuleStep>> Make(kernels::xla::Client& client,
                                                    const StepShape& shape, std::string_view module,
                                                    const std::vector<ModuleArgument>& arguments);
  // Runs one step and returns the mean loss before it.
  StatusOr<double> Run();

 private:
  std::unique_ptr<kernels::xla::Program> program_;
  std::vector<std::unique_ptr<kernels::xla::Buffer>> arguments_;
  std::vector<size_t> state_;  // arguments that results replace
};

}  // namespace troupe::bench

#endif  // TROUPE_BENCH_MODULE_STEP_H_
