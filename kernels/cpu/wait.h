// kWait as an instruction: completes a collective that another instruction started.
#ifndef TROUPE_KERNELS_CPU_WAIT_H_
#define TROUPE_KERNELS_CPU_WAIT_H_

#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "kernels/cpu/instruction.h"

namespace troupe::kernels::cpu {

// The handles of one collective's operations in flight, in order of issue.
using InFlight = std::vector<CollectiveHandle>;

class Wait : public Instruction {
 public:
  explicit Wait(std::shared_ptr<InFlight> in_flight) : in_flight_(std::move(in_flight)) {}

  Status Run(const RunOptions&) override {
    for (CollectiveHandle& handle : *in_flight_) TROUPE_RETURN_IF_ERROR(handle.Wait());
    in_flight_->clear();
    return OkStatus();
  }

 private:
  const std::shared_ptr<InFlight> in_flight_;
};

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_WAIT_H_
