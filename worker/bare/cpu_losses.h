// What a GPU's training is held to: losses of a hundred steps of the CPU backend, recorded once and kept in the binary.
#ifndef TROUPE_WORKER_BARE_CPU_LOSSES_H_
#define TROUPE_WORKER_BARE_CPU_LOSSES_H_

#include <span>
#include <string>

#include "worker/bare/training.h"

namespace troupe {

struct CpuLosses {
  TrainingOptions training;  // of the run: synthetic tokens, devices "cpu"
  double tolerance = 0;      // relative, to which any backend's losses must agree at every step
  std::span<const double> losses;  // [training.steps], nats a token
};

// Of preset "tiny" or "llama-124m" in dtype "float32" or "bfloat16". REQUIRES: one of these.
//
// Rounding differences grow as training goes on, the more the higher the learning rate, so that is low here. Two runs on
// the CPU with other instructions and other orders of sums (TROUPE_KERNEL_LEVEL=avx2 beside avx512_bf16) were measured
// to differ at none of the hundred steps by more than, relative:
//
//              tokens of a step  learning rate  float32 (1e-4 allowed)  bfloat16 (1e-2 allowed)
//   tiny       4 x 32            5e-4           6.5e-7                  1.6e-3
//   llama-124m 2 x 64            5e-5           1.9e-7                  9.5e-4
//
// With tiny at 3e-3 (8 x 64 tokens) and llama-124m at 1e-4 such runs differ by 2.8e-3 and 5.6e-4 in float32: nothing could be
// held to that.
CpuLosses RecordedCpuLosses(const std::string& preset, const std::string& dtype);

// Where in the repository the losses of that run lie, one a line: cpu_losses_test.cc says how they are made again.
std::string CpuLossesPath(const std::string& preset, const std::string& dtype);

}  // namespace troupe

#endif  // TROUPE_WORKER_BARE_CPU_LOSSES_H_
