// Runs a stage program in float64 on the host, one operation at a time. All other backends are
// tested against it. It uses the memory plan only to find which values have one copy per buffer.
#ifndef TROUPE_KERNELS_REFERENCE_REFERENCE_BACKEND_H_
#define TROUPE_KERNELS_REFERENCE_REFERENCE_BACKEND_H_

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend/backend.h"

namespace troupe::kernels {

// Addresses of its executables point to float64 elements, whatever the value's dtype; Write and
// Read convert from and to that dtype.
class ReferenceBackend : public Backend {
 public:
  std::string kernel_level() const override { return "reference"; }
  StatusOr<std::unique_ptr<Executable>> Prepare(const model::Program& program,
                                                const model::MemoryPlan& plan,
                                                const FindCommunicator& find_communicator) override;
  // There is no faster path to fall back from.
  const std::vector<std::string>& fallbacks() const override { return none_; }
  const std::vector<std::string>& implementations() const override { return none_; }
  std::vector<ExecutedMatmul> executed_matmuls() const override { return executed_matmuls_; }
  PreparationCounts preparation_counts() const override { return {}; }

 private:
  const std::vector<std::string> none_ = {};
  std::vector<ExecutedMatmul> executed_matmuls_;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_REFERENCE_REFERENCE_BACKEND_H_
