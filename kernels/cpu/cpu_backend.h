// Runs stage programs on the CPU: oneDNN for matmuls, our own vectorised kernels for the rest,
// OpenMP threads with static partitions. The same program, plan, level and number of threads give
// the same bits.
#ifndef TROUPE_KERNELS_CPU_CPU_BACKEND_H_
#define TROUPE_KERNELS_CPU_CPU_BACKEND_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/cpu/level.h"

namespace troupe::kernels {

struct CpuOptions {
  int threads = 1;  // per rank
  // Absent: the processor's level, or the lower one that TROUPE_KERNEL_LEVEL sets; oneDNN is then
  // limited to that level as well.
  std::optional<cpu::Level> level;
};

class CpuBackend : public Backend {
 public:
  // Errors: INVALID_ARGUMENT if threads is below 1, or if the level is unknown or above the
  // processor's.
  static StatusOr<std::unique_ptr<CpuBackend>> Make(const CpuOptions& options);

  std::string kernel_level() const override { return cpu::Name(level_); }
  cpu::Level level() const { return level_; }
  int threads() const { return threads_; }

  StatusOr<std::unique_ptr<Executable>> Prepare(const model::Program& program,
                                                const model::MemoryPlan& plan,
                                                const FindCommunicator& find_communicator) override;

  // Ops of all programs prepared so far that run on oneDNN's slow reference code: "matmul NAME:
  // ref:any".
  const std::vector<std::string>& fallbacks() const override { return fallbacks_; }
  const std::vector<std::string>& implementations() const override { return implementations_; }
  std::vector<ExecutedMatmul> executed_matmuls() const override { return executed_matmuls_; }
  // There is no tuning and no capture.
  PreparationCounts preparation_counts() const override { return {}; }

 private:
  CpuBackend(cpu::Level level, int threads) : level_(level), threads_(threads) {}

  const cpu::Level level_;
  const int threads_;
  std::vector<std::string> fallbacks_;
  std::vector<ExecutedMatmul> executed_matmuls_;
  const std::vector<std::string> implementations_;  // empty; see fallbacks() for oneDNN's slow code
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_CPU_CPU_BACKEND_H_
