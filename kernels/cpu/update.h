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

// Rows of one parameter with the same weight decay. `args` holds their pointers and count; Run
// fills in the numbers of the step.
struct AdamWEntry {
  AdamWArgs args;
  bool weight_decay;
};
// `learning_rate` is f[1]. `applied_steps` is f[1]; each applied step adds 1 to it.
std::unique_ptr<Instruction> MakeAdamW(const model::AdamWAttributes& attributes,
                                       const double* control, const float* learning_rate,
                                       float* applied_steps, std::vector<AdamWEntry> entries,
                                       const KernelTable& kernels, int threads);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_UPDATE_H_
