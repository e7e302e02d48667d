// Where a NaN or an infinity came from, once a step has found that there is one. Off the hot path:
// nothing here runs in a step whose numbers are finite. Errors are those of reading values.
#ifndef TROUPE_WORKER_EXECUTOR_NONFINITE_H_
#define TROUPE_WORKER_EXECUTOR_NONFINITE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "collective/communicator.h"
#include "kernels/backend.h"
#include "model/program/program.h"

namespace troupe {

// The first element of `value` on `buffer` that is not finite; -1: all are, or it holds integers.
StatusOr<int64_t> FirstNonfinite(const model::Program& program, kernels::Executable& executable,
                                 model::ValueId value, int buffer);

// Which of this rank's tensors is not finite: a weight ("the weight model.norm.weight (head)"), else
// "the loss", else the gradient nearest to it ("gradient of model.layers.2.mlp.gate_proj.weight (block5
// (D))"); empty where all are. `letters`: of the model's blocks.
StatusOr<std::string> NonfiniteTensor(const model::Program& program,
                                      kernels::Executable& executable, std::string_view letters);

// Looks at what each operation makes while a step is run again: the first operation whose output is
// not finite although what it read is.
class NonfiniteOrigin : public kernels::OperationObserver {
 public:
  // The references outlive this.
  NonfiniteOrigin(const model::Program& program, kernels::Executable& executable)
      : program_(program), executable_(executable) {}

  void Ran(const model::Op& op, const char* name, int buffer) override;

  // "matmul block5.mlp.gate_up"; empty while none was found. What came from another rank, or was not
  // finite before the step, has no origin here.
  const std::string& operation() const { return operation_; }

 private:
  // Whether a value on `buffer` is not finite; nothing is looked for any more once one cannot be read.
  bool IsNonfinite(model::ValueId value, int buffer);

  const model::Program& program_;
  kernels::Executable& executable_;
  bool looking_ = true;
  std::string operation_;
};

// What one rank found; all ranks get the same sentence from the same findings.
struct NonfiniteFinding {
  std::string tensor;     // NonfiniteTensor
  std::string operation;  // of NonfiniteOrigin; empty: none, or it was not looked for
};

// "rank 3: gradient of … is not finite; the first value that is not came out of matmul … on rank 2".
// `culprit`: the rank of the control word; -1: none, every rank's own sums are finite. Of several
// origins the lowest rank's is told. Empty texts of all: "". One gather over `all`; null: one rank.
StatusOr<std::string> DescribeNonfinite(const NonfiniteFinding& own, int culprit, Communicator* all);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_NONFINITE_H_
