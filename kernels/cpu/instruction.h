// One op with everything resolved: addresses, kernel, threads. Running it does no allocation, no
// map lookup and no string operation.
#ifndef TROUPE_KERNELS_CPU_INSTRUCTION_H_
#define TROUPE_KERNELS_CPU_INSTRUCTION_H_

#include <string>
#include <utility>

#include "base/status.h"
#include "kernels/backend/backend.h"
#include "kernels/backend/op_sequence.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"

namespace troupe::kernels::cpu {

class Instruction {
 public:
  virtual ~Instruction() = default;
  virtual Status Run(const RunOptions& options) = 0;

  std::string name;                  // kind and value, for reports
  bool gradient_in_forward = false;  // skipped in an evaluation
  bool last_microbatch = false;      // runs only with the last microbatch of a step
};

// Runs a kernel of the table on its arguments, in one or two phases.
template <typename Args>
class KernelInstruction : public Instruction {
 public:
  KernelInstruction(const Args& args, Kernel<Args> kernel, int threads,
                    Overwrites overwrites = Overwrites::kNever, Kernel<Args> finish = nullptr)
      : args_(args), kernel_(kernel), finish_(finish), threads_(threads), overwrites_(overwrites) {}

  Status Run(const RunOptions& options) override {
    if constexpr (requires { args_.accumulate; }) {
      args_.accumulate = Accumulates(overwrites_, options);
    }
    Parallel(threads_, [this](int part) { kernel_(args_, part, threads_); });
    if (finish_ != nullptr)
      Parallel(threads_, [this](int part) { finish_(args_, part, threads_); });
    return OkStatus();
  }

 private:
  Args args_;
  const Kernel<Args> kernel_;
  const Kernel<Args> finish_;
  const int threads_;
  const Overwrites overwrites_;
};

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_INSTRUCTION_H_
