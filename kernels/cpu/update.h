// The rank's instructions of an update: totals, norm, control word, optimizer.
#ifndef TROUPE_KERNELS_CPU_UPDATE_H_
#define TROUPE_KERNELS_CPU_UPDATE_H_

#include <memory>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "kernels/cpu/instruction.h"
#include "model/program/op.h"

namespace troupe::kernels::cpu {

// control: d[kControlLanes]; totals: d[2].
std::unique_ptr<Instruction> MakeControlTotals(int rank, const double* totals, double* control);

// What a router has counted.
struct RouterTotals {
  const double* lanes;  // d[kRouterLanes + experts]
  int64_t experts;
};
std::unique_ptr<Instruction> MakeControlRouted(std::vector<RouterTotals> totals, double* control);

struct FloatRange {
  const float* data;
  int64_t count;
};
// partial: d[threads] of scratch.
std::unique_ptr<Instruction> MakeSumOfSquares(int rank, std::vector<FloatRange> gradients,
                                              double* partial, double* control,
                                              const KernelTable& kernels, int threads);

std::unique_ptr<Instruction> MakeControlReduce(Communicator* communicator, double* control);
// halted: d[1].
std::unique_ptr<Instruction> MakeControlHalt(double* control, double* halted);

// Rows of one parameter that decay alike; `args` holds their pointers and count, the numbers of the
// step are filled in by Run.
struct AdamWEntry {
  AdamWArgs args;
  bool weight_decay;
};
// learning_rate: f[1]. applied_steps: f[1], which a step that is applied adds 1 to.
std::unique_ptr<Instruction> MakeAdamW(const model::AdamWAttributes& attributes,
                                       const double* control, const float* learning_rate,
                                       float* applied_steps, std::vector<AdamWEntry> entries,
                                       const KernelTable& kernels, int threads);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_UPDATE_H_
