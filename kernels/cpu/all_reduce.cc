#include "kernels/cpu/all_reduce.h"

#include <cstring>
#include <optional>

namespace troupe::kernels::cpu {

std::optional<Reduction> ReductionOf(model::DType dtype, model::ReduceKind kind) {
  if (kind == model::ReduceKind::kMax) {
    if (dtype == model::DType::kFloat32) return MaxFloat32();
    return std::nullopt;
  }
  switch (dtype) {
    case model::DType::kFloat32:
      return SumFloat32();
    case model::DType::kFloat64:
      return SumFloat64();
    case model::DType::kBFloat16:
      return SumBfloat16();
    case model::DType::kInt32:
      return std::nullopt;
  }
  return std::nullopt;
}

namespace {

class AllReduce : public Instruction {
 public:
  AllReduce(const char* input, char* output, int64_t bytes, const Reduction& reduction,
            Purpose purpose, Communicator* communicator)
      : input_(input),
        output_(output),
        bytes_(bytes),
        reduction_(reduction),
        purpose_(purpose),
        communicator_(communicator) {}

  Status Run(const RunOptions&) override {
    if (input_ != output_) std::memcpy(output_, input_, bytes_);
    if (communicator_ == nullptr) return OkStatus();
    return communicator_->AllReduce(output_, bytes_ / reduction_.element_bytes, reduction_,
                                    purpose_);
  }

 private:
  const char* const input_;
  char* const output_;
  const int64_t bytes_;
  const Reduction reduction_;
  const Purpose purpose_;
  Communicator* const communicator_;
};

}  // namespace

StatusOr<std::unique_ptr<Instruction>> MakeAllReduce(const char* input, char* output, int64_t bytes,
                                                     model::DType dtype,
                                                     const model::CollectiveAttributes& attributes,
                                                     Communicator* communicator) {
  const std::optional<Reduction> reduction = ReductionOf(dtype, attributes.reduce);
  if (!reduction) return InvalidArgument("no such reduction of {}", model::Name(dtype));
  return std::make_unique<AllReduce>(input, output, bytes, *reduction,
                                     PurposeOf(attributes.purpose), communicator);
}

}  // namespace troupe::kernels::cpu
