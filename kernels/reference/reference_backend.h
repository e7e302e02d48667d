// Runs a stage program in float64 on the host, one operation after the other: what every other
// backend is tested against. Of the memory plan it reads only which values have one copy per
// buffer.
#ifndef TROUPE_KERNELS_REFERENCE_REFERENCE_BACKEND_H_
#define TROUPE_KERNELS_REFERENCE_REFERENCE_BACKEND_H_

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace troupe::kernels {

// Addresses of its executables are of float64 elements whatever the value's dtype; Write and Read
// convert from and to the dtype of the value.
class ReferenceBackend : public Backend {
 public:
  std::string kernel_level() const override { return "reference"; }
  StatusOr<std::unique_ptr<Executable>> Prepare(const model::Program& program,
                                                const model::MemoryPlan& plan,
                                                const FindCommunicator& find_communicator) override;
  const std::vector<std::string>& fallbacks() const override { return none_; }  // there is nothing better
  const std::vector<std::string>& implementations() const override { return none_; }
  std::vector<ExecutedProduct> executed_products() const override { return executed_products_; }
  PreparationCounts preparation_counts() const override { return {}; }

 private:
  const std::vector<std::string> none_;
  std::vector<ExecutedProduct> executed_products_;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_REFERENCE_REFERENCE_BACKEND_H_
