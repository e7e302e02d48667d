#include "kernels/cpu/all_to_all.h"

#include <cstring>
#include <utility>
#include <vector>

namespace troupe::kernels::cpu {
namespace {

class AllToAll : public Instruction {
 public:
  AllToAll(const AllToAllArgs& args, Purpose purpose, Communicator* communicator,
           std::shared_ptr<InFlight> in_flight)
      : args_(args),
        purpose_(purpose),
        communicator_(communicator),
        send_bytes_(communicator != nullptr ? communicator->size() : 1),
        receive_bytes_(send_bytes_.size()),
        in_flight_(std::move(in_flight)) {}

  Status Run(const RunOptions&) override {
    if (args_.sent == nullptr) {
      send_bytes_.assign(send_bytes_.size(),
                         args_.num_counts / send_bytes_.size() * args_.row_bytes);
      receive_bytes_ = send_bytes_;
    } else {
      Sum(args_.sent, &send_bytes_);
      Sum(args_.received, &receive_bytes_);
    }
    if (communicator_ != nullptr && in_flight_ != nullptr) {
      in_flight_->push_back(communicator_->StartAllToAll(args_.input, args_.output, send_bytes_,
                                                         receive_bytes_, purpose_));
      return OkStatus();
    }
    if (communicator_ != nullptr) {
      return communicator_->AllToAll(args_.input, args_.output, send_bytes_, receive_bytes_,
                                     purpose_);
    }
    if (args_.input != args_.output) std::memcpy(args_.output, args_.input, send_bytes_[0]);
    return OkStatus();
  }

 private:
  void Sum(const int32_t* counts, std::vector<size_t>* bytes) const {
    const int64_t each = args_.num_counts / static_cast<int64_t>(bytes->size());
    for (size_t r = 0; r < bytes->size(); ++r) {
      (*bytes)[r] = 0;
      for (int64_t c = 0; c < each; ++c) (*bytes)[r] += *counts++ * args_.row_bytes;
    }
  }

  const AllToAllArgs args_;
  const Purpose purpose_;
  Communicator* const communicator_;
  std::vector<size_t> send_bytes_, receive_bytes_;
  const std::shared_ptr<InFlight> in_flight_;
};

}  // namespace

std::unique_ptr<Instruction> MakeAllToAll(const AllToAllArgs& args, Purpose purpose,
                                          Communicator* communicator,
                                          std::shared_ptr<InFlight> in_flight) {
  return std::make_unique<AllToAll>(args, purpose, communicator, std::move(in_flight));
}

}  // namespace troupe::kernels::cpu
