#include "kernels/cpu/relayout.h"

#include <utility>

namespace troupe::kernels::cpu {
namespace {

class Relayout : public Instruction {
 public:
  Relayout(RowRelayout relayout, const char* input, char* output, char* scratch,
           Communicator* communicator)
      : relayout_(std::move(relayout)),
        input_(input),
        output_(output),
        scratch_(scratch),
        communicator_(communicator) {}

  Status Run(const RunOptions&) override {
    return relayout_.Run(input_, output_, scratch_, scratch_ + relayout_.bytes(), communicator_);
  }

 private:
  const RowRelayout relayout_;
  const char* const input_;
  char* const output_;
  char* const scratch_;
  Communicator* const communicator_;
};

}  // namespace

std::unique_ptr<Instruction> MakeRelayout(RowRelayout relayout, const char* input, char* output,
                                          char* scratch, Communicator* communicator) {
  return std::make_unique<Relayout>(std::move(relayout), input, output, scratch, communicator);
}

}  // namespace troupe::kernels::cpu
