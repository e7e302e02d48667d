// The instructions of a rank's update: totals, norm, control word, optimizer.
#ifndef TROUPE_KERNELS_CPU_UPDATE_H_
#define TROUPE_KERNELS_CPU_UPDATE_H_

#include <memory>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "kernels/cpu/instruction.h"
#include "model/program/op.h"

namespace troupe::kernels::cpu {

// Adds `totals`, d[2], to `control`, d[kControlLanes].
std::unique_ptr<Instruction> MakeControlTotals(int rank, const double* totals, double* control);

// The counts of one router.
struct RouterTotals {
  const double* lanes;  // d[kRouterLanes + experts]
  int64_t experts;
};
std::unique_ptr<Instruction> MakeControlRouted(std::vector<RouterTotals> totals, double* control);

struct FloatRange {
  const float* data;
  int64_t count;
};
// `partial` is scratch of d[threads].
std::unique_ptr<Instruction> MakeSumOfSquares(int rank, std::vector<FloatRange> gradients,
                                              double* partial, double* control,
                                              const KernelTable& kernels, int threads);

std::unique_ptr<Instruction> MakeControlReduce(Communicator* communicator, double* control);
// `halted` is d[1].
std::unique_ptr<Instruction> MakeControlHalt(double* control, double* halted);

// `applied_steps` is f[1]; each applied step adds 1 to it.
std::unique_ptr<Instruction> MakeCountStep(const double* control, float* applied_steps);

// An optimizer reads and writes these.
struct UpdateInputs {
  const double* control;
  const float* learning_rate;  // f[1]
  const float* applied_steps;  // f[1]
  std::vector<UpdateArgs> parameters;
};
std::unique_ptr<Instruction> MakeAdamW(const model::AdamWAttributes& attributes,
                                       UpdateInputs inputs, const KernelTable& kernels,
                                       int threads);
std::unique_ptr<Instruction> MakeSgd(const model::SgdAttributes& attributes, UpdateInputs inputs,
                                     const KernelTable& kernels, int threads);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_UPDATE_H_
