// Makes the instructions of collectives.
#include <utility>

#include "base/check.h"
#include "kernels/cpu/all_reduce.h"
#include "kernels/cpu/all_to_all.h"
#include "kernels/cpu/gather_scatter.h"
#include "kernels/cpu/preparation.h"
#include "kernels/op_sequence.h"
#include "kernels/reduced_ranges.h"

namespace troupe::kernels::cpu {
namespace {

using model::Op;
using model::OpKind;
using model::ValueId;

}  // namespace

StatusOr<std::unique_ptr<Instruction>> Preparation::MakeCollective(const Op& op, int buffer) {
  std::vector<ReducedRange> ranges =
      ReducedRangesOf(program_, op, [&](ValueId value) { return Address(value, buffer); });
  return MakeAllReduce(std::move(ranges), program_.value(op.inputs[0]).dtype,
                       std::get<model::CollectiveAttributes>(op.attributes),
                       CommunicatorOf(op, find_communicator_), UnderWayOf(op));
}

std::shared_ptr<UnderWay> Preparation::UnderWayOf(const Op& op) {
  if (!op.asynchronous) return nullptr;
  std::shared_ptr<UnderWay>& under_way = under_way_[op.outputs[0]];
  if (under_way == nullptr) under_way = std::make_shared<UnderWay>();
  return under_way;
}

StatusOr<std::unique_ptr<Instruction>> Preparation::MakeReduceScatter(const Op& op, int buffer) {
  const auto& attributes = std::get<model::CollectiveAttributes>(op.attributes);
  const model::Value& whole = program_.value(op.inputs[0]);
  return cpu::MakeReduceScatter(
      {.input = Address(op.inputs[0], buffer),
       .output = Address(op.outputs[0], buffer),
       .copy = KeepsInput(op) ? scratch() : nullptr,
       .counts = BlockElements(whole, attributes.cut, model::GroupSize(program_.mesh, attributes.group)),
       .dtype = whole.dtype,
       .purpose = PurposeOf(attributes.purpose),
       .wire = attributes.wire},
      CommunicatorOf(op, find_communicator_), UnderWayOf(op));
}

RowExchange Preparation::ExchangeOf(const Op& op) const {
  return RowExchange(program_, op, static_cast<size_t>(SizeOf(program_.value(op.inputs[0]).dtype)));
}

// Whether an op that would overwrite its input must work on a copy instead.
bool Preparation::KeepsInput(const Op& op) const {
  if (op.consumes_input) return false;
  int64_t offset = 0;
  return RootOf(program_, op.inputs[0], &offset) != RootOf(program_, op.outputs[0], &offset);
}

RoutedRowsArgs Preparation::RoutedOf(const Op& op, int buffer) const {
  const model::Value& x = program_.value(op.inputs[0]);
  const auto& attributes = std::get<model::CollectiveAttributes>(op.attributes);
  return {.input = Address(op.inputs[0], buffer),
          .output = Address(op.outputs[0], buffer),
          .copy = op.kind == OpKind::kScatterRouted && KeepsInput(op) ? scratch() : nullptr,
          .counts = reinterpret_cast<const int32_t*>(Address(op.inputs[1], buffer)),
          .num_counts = Extent(op.inputs[1], 0),
          .row_elements = x.row_elements(),
          .dtype = x.dtype,
          .purpose = PurposeOf(attributes.purpose)};
}

std::unique_ptr<Instruction> Preparation::MakeExchange(const Op& op, int buffer) {
  const model::Value& x = program_.value(op.inputs[0]);
  AllToAllArgs args{Address(op.inputs[0], buffer),
                    Address(op.outputs[0], buffer),
                    nullptr,
                    nullptr,
                    x.dims[0].local,
                    model::SizeOf(x.dtype)};
  if (op.inputs.size() > 1) {
    args.sent = reinterpret_cast<const int32_t*>(Address(op.inputs[1], buffer));
    args.received = reinterpret_cast<const int32_t*>(Address(op.inputs[2], buffer));
    args.num_counts = Extent(op.inputs[1], 0);
    args.row_bytes = x.dims[1].local * model::SizeOf(x.dtype);
  }
  return MakeAllToAll(args, PurposeOf(std::get<model::CollectiveAttributes>(op.attributes).purpose),
                      CommunicatorOf(op, find_communicator_), UnderWayOf(op));
}

}  // namespace troupe::kernels::cpu
