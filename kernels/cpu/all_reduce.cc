#include "kernels/cpu/all_reduce.h"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::kernels::cpu {

std::optional<Reduction> ReductionOf(model::DType dtype, model::ReduceKind kind,
                                     model::DType wire) {
  if (kind == model::ReduceKind::kMax) {
    if (dtype == model::DType::kFloat32) return MaxFloat32();
    return std::nullopt;
  }
  switch (dtype) {
    case model::DType::kFloat32:
      return wire == model::DType::kBFloat16 ? SumFloat32AsBfloat16() : SumFloat32();
    case model::DType::kFloat64:
      return SumFloat64();
    case model::DType::kBFloat16:
      return SumBfloat16();
    case model::DType::kInt32:
    case model::DType::kFloat8E4M3:
    case model::DType::kFloat8E5M2:
      return std::nullopt;
  }
  return std::nullopt;
}

namespace {

class AllReduce : public Instruction {
 public:
  AllReduce(std::vector<ReducedRange> ranges, const Reduction& reduction, Purpose purpose,
            Communicator* communicator, std::shared_ptr<InFlight> in_flight)
      : ranges_(std::move(ranges)),
        reduction_(reduction),
        purpose_(purpose),
        communicator_(communicator),
        in_flight_(std::move(in_flight)) {}

  Status Run(const RunOptions&) override {
    for (const ReducedRange& range : ranges_) {
      if (range.input != range.output) std::memcpy(range.output, range.input, range.bytes);
      if (communicator_ == nullptr) continue;
      const size_t count = range.bytes / reduction_.element_bytes;
      if (in_flight_ != nullptr) {
        in_flight_->push_back(
            communicator_->StartAllReduce(range.output, count, reduction_, purpose_));
        continue;
      }
      TROUPE_RETURN_IF_ERROR(communicator_->AllReduce(range.output, count, reduction_, purpose_));
    }
    return OkStatus();
  }

 private:
  const std::vector<ReducedRange> ranges_;
  const Reduction reduction_;
  const Purpose purpose_;
  Communicator* const communicator_;
  const std::shared_ptr<InFlight> in_flight_;  // null: Run completes the collective
};

}  // namespace

StatusOr<std::unique_ptr<Instruction>> MakeAllReduce(std::vector<ReducedRange> ranges,
                                                     model::DType dtype,
                                                     const model::AllReduceAttributes& attributes,
                                                     Communicator* communicator,
                                                     std::shared_ptr<InFlight> in_flight) {
  const std::optional<Reduction> reduction = ReductionOf(dtype, attributes.reduce, attributes.wire);
  if (!reduction) return InvalidArgument("a reduction of {} is not supported", model::Name(dtype));
  return std::make_unique<AllReduce>(std::move(ranges), *reduction, attributes.purpose,
                                     communicator, std::move(in_flight));
}

}  // namespace troupe::kernels::cpu
