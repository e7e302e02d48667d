#include "kernels/cpu/shift.h"

#include <cstring>
#include <utility>

#include "kernels/exchange/ring_shift.h"

namespace troupe::kernels::cpu {
namespace {

class Shift : public Instruction {
 public:
  Shift(const ShiftArgs& args, Communicator* communicator, std::shared_ptr<UnderWay> under_way)
      : args_(args),
        communicator_(communicator),
        shift_(communicator == nullptr ? 1 : communicator->size(),
               communicator == nullptr ? 0 : communicator->rank(), args.shift,
               static_cast<size_t>(args.bytes)),
        under_way_(std::move(under_way)) {}

  Status Run(const RunOptions&) override {
    if (communicator_ == nullptr) {
      std::memcpy(args_.output, args_.input, static_cast<size_t>(args_.bytes));
      return OkStatus();
    }
    if (under_way_ != nullptr) {
      under_way_->push_back(communicator_->StartAllToAll(
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
  const std::shared_ptr<UnderWay> under_way_;
};

}  // namespace

std::unique_ptr<Instruction> MakeShift(const ShiftArgs& args, Communicator* communicator,
                                       std::shared_ptr<UnderWay> under_way) {
  return std::make_unique<Shift>(args, communicator, std::move(under_way));
}

}  // namespace troupe::kernels::cpu
