// The reference for training on a GPU: losses of a hundred steps of the CPU backend, recorded once
// and stored in the binary.
#ifndef TROUPE_TESTS_GPU_CPU_LOSSES_H_
#define TROUPE_TESTS_GPU_CPU_LOSSES_H_

#include <span>
#include <string>

#include "tests/gpu/training.h"

namespace troupe {

struct CpuLosses {
  TrainingOptions training;  // options of the run: synthetic tokens, devices "cpu"
  // Relative; any backend's losses must agree with these within it at every step.
  double tolerance = 0;
  std::span<const double> losses;  // [training.steps], nats per token
};

// Returns the losses of preset "tiny" or "llama-124m" in dtype "float32" or "bfloat16". REQUIRES:
// one of these.
//
// Rounding differences grow during training, faster with a higher learning rate, so the rate is low
// here. Two runs on the CPU with different instructions and orders of summation
// (TROUPE_KERNEL_LEVEL=avx2 and avx512_bf16) were measured to differ, at any of the hundred steps,
// by at most (relative):
//
//              tokens of a step  learning rate  float32 (1e-4 allowed)  bfloat16 (1e-2 allowed)
//   tiny       4 x 32            5e-4           6.5e-7                  1.6e-3
//   llama-124m 2 x 64            5e-5           1.9e-7                  9.5e-4
//
// With tiny at 3e-3 (8 x 64 tokens) and llama-124m at 1e-4 such runs differ by 2.8e-3 and 5.6e-4 in
// float32, which is too much for a comparison.
CpuLosses RecordedCpuLosses(const std::string& preset, const std::string& dtype);

// Path in the repository of the losses of that run, one per line; cpu_losses_test.cc states how to
// record them again.
std::string CpuLossesPath(const std::string& preset, const std::string& dtype);

}  // namespace troupe

#endif  // TROUPE_TESTS_GPU_CPU_LOSSES_H_
