#include "kernels/cpu/shift.h"

#include <cstring>
#include <utility>

#include "kernels/exchange/ring_shift.h"

namespace troupe::kernels::cpu {
namespace {

class Shift : public Instruction {
 public:
  Shift(const ShiftArgs& args, Communicator* communicator, std::shared_ptr<InFlight> in_flight)
      : args_(args),
        communicator_(communicator),
        shift_(communicator == nullptr ? 1 : communicator->size(),
               communicator == nullptr ? 0 : communicator->rank(), args.shift,
               static_cast<size_t>(args.bytes)),
        in_flight_(std::move(in_flight)) {}

  Status Run(const RunOptions&) override {
    if (communicator_ == nullptr) {
      std::memcpy(args_.output, args_.input, static_cast<size_t>(args_.bytes));
      return OkStatus();
    }
    if (in_flight_ != nullptr) {
      in_flight_->push_back(communicator_->StartAllToAll(
          args_.input, args_.output, shift_.send_bytes, shift_.receive_bytes, args_.purpose));
      return OkStatus();
    }
    return communicator_->AllToAll(args_.input, args_.output, shift_.send_bytes,
                                   shift_.receive_bytes, args_.purpose);
  }

 private:
  const ShiftArgs args_;
  Communicator* const communicator_;
  const RingShift shift_;
  const std::shared_ptr<InFlight> in_flight_;
};

}  // namespace

std::unique_ptr<Instruction> MakeShift(const ShiftArgs& args, Communicator* communicator,
                                       std::shared_ptr<InFlight> in_flight) {
  return std::make_unique<Shift>(args, communicator, std::move(in_flight));
}

}  // namespace troupe::kernels::cpu
