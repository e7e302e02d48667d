// Finds the origin of a NaN or an infinity after a step has detected one. Not on the hot path:
// nothing here runs in a step whose numbers are finite. Returns errors of reading values.
#ifndef TROUPE_WORKER_EXECUTOR_NONFINITE_H_
#define TROUPE_WORKER_EXECUTOR_NONFINITE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "collective/communicator.h"
#include "kernels/backend/executable.h"
#include "model/program/program.h"

namespace troupe {

// Returns the first element of `value` in `buffer` that is not finite; -1 if all are finite or the
// value holds integers.
StatusOr<int64_t> FirstNonfinite(const model::Program& program, kernels::ValueMemory& values,
                                 model::ValueId value, int buffer);

// Names what is not finite on this rank: a weight ("the weight model.norm.weight (head)"), else
// "the loss". Empty if all are finite. `letters` has the letters of the model's blocks.
StatusOr<std::string> NonfiniteWeightOrLoss(const model::Program& program,
                                            kernels::ValueMemory& values, std::string_view letters);

// Likewise; else the gradient nearest to the loss ("gradient of
// model.layers.2.mlp.gate_proj.weight (block5 (D))").
StatusOr<std::string> NonfiniteTensor(const model::Program& program, kernels::ValueMemory& values,
                                      std::string_view letters);

// Observes a step that is run again and finds the first operation with an output that is not finite
// although its inputs are.
class NonfiniteOrigin : public kernels::OperationObserver {
 public:
  // `program` and `values` outlive this object.
  NonfiniteOrigin(const model::Program& program, kernels::ValueMemory& values)
      : program_(program), values_(values) {}

  void Ran(const model::Op& op, const char* name, int buffer) override;

  // The operation found, such as "matmul block5.mlp.gate_up"; empty if none. A number that came
  // from another rank, or was not finite before the step, has no origin here.
  const std::string& operation() const { return operation_; }

 private:
  // Whether a value in `buffer` is not finite. The search ends when a value cannot be read.
  bool IsNonfinite(model::ValueId value, int buffer);

  const model::Program& program_;
  kernels::ValueMemory& values_;
  bool looking_ = true;
  std::string operation_;
};

// The findings of one rank. All ranks make the same sentence from the same findings.
struct NonfiniteFinding {
  std::string tensor;     // result of NonfiniteTensor or NonfiniteWeightOrLoss
  std::string operation;  // result of NonfiniteOrigin; empty: none found, or no search was made
};

// Returns "rank 3: gradient of … is not finite; the first value that is not finite is an output of
// matmul … on rank 2", identical on all ranks. `culprit` is the rank in the control word; -1: none,
// because every rank's own sums are finite. If several ranks found an origin, the lowest rank's is
// reported. Returns "" if no rank found anything. Collective: one all-gather over `all`; null if
// there is only one rank.
StatusOr<std::string> DescribeNonfinite(const NonfiniteFinding& own, int culprit,
                                        Communicator* all);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_NONFINITE_H_
