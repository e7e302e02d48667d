// Makes the instructions of collectives.
#include <utility>

#include "base/check.h"
#include "kernels/backend/reduced_ranges.h"
#include "kernels/cpu/all_reduce.h"
#include "kernels/cpu/all_to_all.h"
#include "kernels/cpu/gather_scatter.h"
#include "kernels/cpu/preparation.h"
#include "kernels/cpu/relayout.h"
#include "kernels/cpu/shift.h"

namespace troupe::kernels::cpu {
namespace {

using model::Op;
using model::OpKind;
using model::ValueId;

Purpose PurposeOfOp(const Op& op) { return model::CollectiveOf(op).purpose; }

}  // namespace

MadeInstruction Preparation::MakeAllReduce(const Making& making) {
  const Op& op = making.op;
  std::vector<ReducedRange> ranges =
      ReducedRangesOf(program_, op, [&](ValueId value) { return Address(value, making.buffer); });
  return cpu::MakeAllReduce(std::move(ranges), program_.value(op.inputs[0]).dtype,
                            std::get<model::AllReduceAttributes>(op.attributes),
                            CommunicatorOf(op, find_communicator_), InFlightOf(op));
}

MadeInstruction Preparation::MakeReduceScatter(const Making& making) {
  const Op& op = making.op;
  const auto& attributes = std::get<model::ReduceScatterAttributes>(op.attributes);
  const model::Value& whole = program_.value(op.inputs[0]);
  return cpu::MakeReduceScatter(
      {.input = making.in(0),
       .output = making.out(0),
       .copy = KeepsInput(op) ? scratch() : nullptr,
       .counts =
           BlockElements(whole, attributes.cut, model::GroupSize(program_.mesh, attributes.group)),
       .dtype = whole.dtype,
       .purpose = attributes.purpose,
       .wire = attributes.wire},
      CommunicatorOf(op, find_communicator_), InFlightOf(op));
}

MadeInstruction Preparation::MakeAllGather(const Making& making) {
  const Op& op = making.op;
  const auto& attributes = std::get<model::AllGatherAttributes>(op.attributes);
  const model::Value& whole = program_.value(op.outputs[0]);
  std::vector<size_t> bytes =
      BlockElements(whole, attributes.cut, model::GroupSize(program_.mesh, attributes.group));
  for (size_t& block : bytes) block *= static_cast<size_t>(SizeOf(whole.dtype));
  return cpu::MakeAllGather(making.in(0), making.out(0), std::move(bytes), attributes.purpose,
                            CommunicatorOf(op, find_communicator_), InFlightOf(op));
}

MadeInstruction Preparation::MakeExchangeHeads(const Making& making) {
  return cpu::MakeExchangeHeads(ExchangeOf(making.op), making.in(0), making.out(0), scratch(),
                                CommunicatorOf(making.op, find_communicator_));
}

MadeInstruction Preparation::MakeRelayout(const Making& making) {
  const Op& op = making.op;
  const auto element_bytes = static_cast<size_t>(SizeOf(program_.value(op.inputs[0]).dtype));
  return cpu::MakeRelayout(RowRelayout(program_, op, element_bytes), making.in(0), making.out(0),
                           scratch(), CommunicatorOf(op, find_communicator_));
}

MadeInstruction Preparation::MakeShift(const Making& making) {
  const Op& op = making.op;
  const ShiftArgs args = {making.in(0), making.out(0), program_.value(op.inputs[0]).bytes(),
                          std::get<model::ShiftAttributes>(op.attributes).shift, PurposeOfOp(op)};
  return cpu::MakeShift(args, CommunicatorOf(op, find_communicator_), InFlightOf(op));
}

MadeInstruction Preparation::MakeAllToAll(const Making& making) {
  const Op& op = making.op;
  const model::Value& x = program_.value(op.inputs[0]);
  AllToAllArgs args{making.in(0), making.out(0),   nullptr,
                    nullptr,      x.dims[0].local, model::SizeOf(x.dtype)};
  if (op.inputs.size() > 1) {
    args.sent = reinterpret_cast<const int32_t*>(making.in(1));
    args.received = reinterpret_cast<const int32_t*>(making.in(2));
    args.num_counts = Extent(op.inputs[1], 0);
    args.row_bytes = x.dims[1].local * model::SizeOf(x.dtype);
  }
  return cpu::MakeAllToAll(args, PurposeOfOp(op), CommunicatorOf(op, find_communicator_),
                           InFlightOf(op));
}

MadeInstruction Preparation::MakeGatherRouted(const Making& making) {
  return cpu::MakeGatherRouted(RoutedOf(making.op, making.buffer),
                               CommunicatorOf(making.op, find_communicator_));
}

MadeInstruction Preparation::MakeScatterRouted(const Making& making) {
  return cpu::MakeScatterRouted(RoutedOf(making.op, making.buffer),
                                CommunicatorOf(making.op, find_communicator_));
}

MadeInstruction Preparation::MakeWait(const Making& making) {
  const auto begun = in_flight_.find(making.op.inputs[0]);
  if (begun == in_flight_.end()) return Internal("it waits for a collective that was not started");
  return std::make_unique<Wait>(begun->second);
}

std::shared_ptr<InFlight> Preparation::InFlightOf(const Op& op) {
  if (!op.asynchronous) return nullptr;
  std::shared_ptr<InFlight>& in_flight = in_flight_[op.outputs[0]];
  if (in_flight == nullptr) in_flight = std::make_shared<InFlight>();
  return in_flight;
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
  return {.input = Address(op.inputs[0], buffer),
          .output = Address(op.outputs[0], buffer),
          .copy = op.kind == OpKind::kScatterRouted && KeepsInput(op) ? scratch() : nullptr,
          .counts = reinterpret_cast<const int32_t*>(Address(op.inputs[1], buffer)),
          .num_counts = Extent(op.inputs[1], 0),
          .row_elements = x.row_elements(),
          .dtype = x.dtype,
          .purpose = PurposeOfOp(op)};
}

}  // namespace troupe::kernels::cpu
