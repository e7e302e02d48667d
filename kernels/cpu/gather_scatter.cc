#include "kernels/cpu/gather_scatter.h"

#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/cpu/all_reduce.h"

namespace troupe::kernels::cpu {
namespace {

class ReduceScatter : public Instruction {
 public:
  ReduceScatter(ReduceScatterArgs args, const Reduction& reduction, Communicator* communicator,
                std::shared_ptr<InFlight> in_flight)
      : args_(std::move(args)),
        reduction_(reduction),
        bytes_(std::accumulate(args_.counts.begin(), args_.counts.end(), size_t{0}) *
               reduction.element_bytes),
        communicator_(communicator),
        in_flight_(std::move(in_flight)) {}

  Status Run(const RunOptions&) override {
    if (communicator_ == nullptr) {
      if (args_.output != args_.input) std::memcpy(args_.output, args_.input, bytes_);
      return OkStatus();
    }
    char* data = args_.input;
    if (args_.copy != nullptr) {
      std::memcpy(args_.copy, args_.input, bytes_);
      data = args_.copy;
    }
    if (in_flight_ != nullptr) {
      in_flight_->push_back(communicator_->StartReduceScatter(data, args_.output, args_.counts,
                                                              reduction_, args_.purpose));
      return OkStatus();
    }
    return communicator_->ReduceScatter(data, args_.output, args_.counts, reduction_,
                                        args_.purpose);
  }

 private:
  const ReduceScatterArgs args_;
  const Reduction reduction_;
  const size_t bytes_;
  Communicator* const communicator_;
  const std::shared_ptr<InFlight> in_flight_;
};

class AllGather : public Instruction {
 public:
  AllGather(const char* input, char* output, std::vector<size_t> bytes_by_rank, Purpose purpose,
            Communicator* communicator, std::shared_ptr<InFlight> in_flight)
      : input_(input),
        output_(output),
        bytes_by_rank_(std::move(bytes_by_rank)),
        purpose_(purpose),
        communicator_(communicator),
        in_flight_(std::move(in_flight)) {}

  Status Run(const RunOptions&) override {
    if (communicator_ == nullptr) {
      if (output_ != input_) std::memcpy(output_, input_, bytes_by_rank_[0]);
      return OkStatus();
    }
    if (in_flight_ != nullptr) {
      in_flight_->push_back(
          communicator_->StartAllGather(input_, output_, bytes_by_rank_, purpose_));
      return OkStatus();
    }
    return communicator_->AllGather(input_, output_, bytes_by_rank_, purpose_);
  }

 private:
  const char* const input_;
  char* const output_;
  const std::vector<size_t> bytes_by_rank_;
  const Purpose purpose_;
  Communicator* const communicator_;
  const std::shared_ptr<InFlight> in_flight_;
};

class HeadExchange : public Instruction {
 public:
  HeadExchange(RowExchange exchange, const char* input, char* output, char* scratch,
               Communicator* communicator)
      : exchange_(std::move(exchange)),
        input_(input),
        output_(output),
        scratch_(scratch),
        communicator_(communicator) {}

  Status Run(const RunOptions&) override {
    return exchange_.Run(input_, output_, scratch_, scratch_ + exchange_.bytes(), communicator_);
  }

 private:
  const RowExchange exchange_;
  const char* const input_;
  char* const output_;
  char* const scratch_;
  Communicator* const communicator_;
};

}  // namespace

StatusOr<std::unique_ptr<Instruction>> MakeReduceScatter(ReduceScatterArgs args,
                                                         Communicator* communicator,
                                                         std::shared_ptr<InFlight> in_flight) {
  const std::optional<Reduction> sum = ReductionOf(args.dtype, model::ReduceKind::kSum, args.wire);
  if (!sum) return InvalidArgument("sums of {} are not supported", model::Name(args.dtype));
  return std::make_unique<ReduceScatter>(std::move(args), *sum, communicator, std::move(in_flight));
}

std::unique_ptr<Instruction> MakeAllGather(const char* input, char* output,
                                           std::vector<size_t> bytes_by_rank, Purpose purpose,
                                           Communicator* communicator,
                                           std::shared_ptr<InFlight> in_flight) {
  return std::make_unique<AllGather>(input, output, std::move(bytes_by_rank), purpose, communicator,
                                     std::move(in_flight));
}

std::unique_ptr<Instruction> MakeExchangeHeads(RowExchange exchange, const char* input,
                                               char* output, char* scratch,
                                               Communicator* communicator) {
  return std::make_unique<HeadExchange>(std::move(exchange), input, output, scratch, communicator);
}

}  // namespace troupe::kernels::cpu
