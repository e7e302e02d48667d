#include "bench/program_bench.h"

#include <algorithm>
#include <set>

#include "base/random.h"
#include "kernels/bfloat16.h"

namespace troupe::bench {

clockid_t timing_clock = CLOCK_MONOTONIC;

double Now() {
  timespec now;
  clock_gettime(timing_clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

StatusOr<model::ModelConfig> ConfigOf(const std::string& preset) {
  if (preset == "llama-124m") {
    return model::ModelConfig{
        model::ExpandPattern("(AD)x12").value(), 768, 12, 12, 64, 2048, 50304, true};
  }
  if (preset == "tiny") {
    return model::ModelConfig{
        model::ExpandPattern("(AD)x4").value(), 256, 8, 4, 32, 704, 259, false};
  }
  return InvalidArgument("model is {}, must be llama-124m or tiny", preset);
}

model::Program OnlyOps(const model::Program& program, const KeepOp& keep) {
  model::Program reduced = program;
  const auto drop = [&](const model::Op& op) { return !keep(op); };
  for (auto& chunk : reduced.ops) {
    for (auto& piece : chunk) std::erase_if(piece, drop);
  }
  std::erase_if(reduced.update, drop);
  reduced.initialize.clear();
  return reduced;
}

void FillRandomly(kernels::Executable& executable, const model::Program& program) {
  std::vector<float> noise(1 << 16);
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<float>(0.02 * Normal(1, i));
  std::set<model::ValueId> used;
  const auto use = [&](const std::vector<model::Op>& ops) {
    for (const model::Op& op : ops) {
      used.insert(op.inputs.begin(), op.inputs.end());
      used.insert(op.outputs.begin(), op.outputs.end());
    }
  };
  for (const auto& chunk : program.ops) {
    for (const auto& piece : chunk) use(piece);
  }
  use(program.update);
  for (const model::ValueId id : used) {
    const model::Value& value = program.value(id);
    void* address = executable.Address(value.id, 0);
    for (int64_t i = 0; i < value.elements(); ++i) {
      const float number = noise[i & (noise.size() - 1)];
      if (value.dtype == model::DType::kFloat32) static_cast<float*>(address)[i] = number;
      if (value.dtype == model::DType::kBFloat16) {
        static_cast<kernels::BFloat16*>(address)[i] = kernels::ToBFloat16(number);
      }
      if (value.dtype == model::DType::kInt32)
        static_cast<int32_t*>(address)[i] = static_cast<int32_t>(i & 127);
    }
  }
}

}  // namespace troupe::bench
