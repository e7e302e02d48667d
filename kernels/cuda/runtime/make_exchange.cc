// Makes the commands of collectives that pack rows, and of those whose lengths are counts computed
// by kernels.
#include <cstdint>
#include <utility>

#include "kernels/backend/op_sequence.h"
#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/kernels/move_rows.h"
#include "kernels/cuda/runtime/preparation.h"
#include "kernels/exchange/row_exchange.h"
#include "kernels/exchange/row_moves.h"
#include "kernels/exchange/row_relayout.h"

namespace troupe::kernels::cuda {

using model::Op;
using model::OpKind;

Status Preparation::AddRowExchange(const Making& making, const RowMoves& moves) {
  const Op& op = making.op;
  DeviceCommunicator* const group = GroupOf(op);
  if (group == nullptr) return AddCopyOfOne(making);
  const Purpose purpose = model::CollectiveOf(op).purpose;
  const char* const input = making.in(0);
  char* const output = making.out(0);
  char* const send = AllocateBytesForCommunication(program_.value(op.inputs[0]).bytes());
  char* const receive = AllocateBytesForCommunication(program_.value(op.outputs[0]).bytes());
  Commands communication;
  const auto move = [&](const std::vector<RowMove>& rows, const char* from, char* to) {
    const RowMove* const table = Table(rows);
    if (!rows.empty()) {
      communication.emplace_back(Stream::kCommunication, MoveRows(rows, table, from, to));
    }
  };
  move(moves.pack, input, send);
  move(moves.stay, input, output);
  const auto exchange = [=, to = moves.send_bytes, from = moves.receive_bytes](Stream stream) {
    return group->AllToAll(send, receive, to, from, purpose, static_cast<DeviceStream>(stream));
  };
  communication.emplace_back(Stream::kCommunication, LibraryCommand{exchange});
  move(moves.unpack, receive, output);
  return AddCommunication(making.commands, op, std::move(communication));
}

Status Preparation::MakeExchangeHeads(const Making& making) {
  const model::DType dtype = program_.value(making.op.inputs[0]).dtype;
  const auto element_bytes = static_cast<size_t>(model::SizeOf(dtype));
  return AddRowExchange(making, RowExchange(program_, making.op, element_bytes).moves());
}

Status Preparation::MakeRelayout(const Making& making) {
  const model::DType dtype = program_.value(making.op.inputs[0]).dtype;
  const auto element_bytes = static_cast<size_t>(model::SizeOf(dtype));
  return AddRowExchange(making, RowRelayout(program_, making.op, element_bytes).moves());
}

Status Preparation::MakeGatherRouted(const Making& making) {
  DeviceCommunicator* const group = GroupOf(making.op);
  if (group != nullptr) return AddRoutedExchange(making, group);
  TROUPE_RETURN_IF_ERROR(making.Launch(CopyRoutedRows(making.arguments.CopyRoutedRows())));
  return AddCopiesOfOne(making, {});
}

Status Preparation::MakeScatterRouted(const Making& making) { return MakeGatherRouted(making); }

StatusOr<Preparation::HostCounts*> Preparation::HostCountsOf(const Op& op, int64_t count) {
  HostCounts& counts = host_counts_[&op];
  if (counts.memory == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(counts.memory,
                            device_.AllocatePinned(count * int64_t{sizeof(int32_t)}));
    TROUPE_ASSIGN_OR_RETURN(counts.there, device_.MakeEvent());
  }
  return &counts;
}

Status Preparation::AddRoutedExchange(const Making& making, DeviceCommunicator* group) {
  const Op& op = making.op;
  const model::Value& x = program_.value(op.inputs[0]);
  const Purpose purpose = model::CollectiveOf(op).purpose;
  const char* const input = making.in(0);
  char* const output = making.out(0);
  const int64_t count = Extent(op.inputs[1], 0);
  // Sent and received counts, or those of all ranks.
  const int64_t arrays = static_cast<int64_t>(op.inputs.size()) - 1;
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOf(x.dtype));
  TROUPE_ASSIGN_OR_RETURN(HostCounts* const counts, HostCountsOf(op, arrays * count));
  std::vector<const char*> from;
  for (int64_t i = 1; i <= arrays; ++i) from.push_back(making.in(static_cast<size_t>(i)));

  // For each rank: the elements in the rows that the counts of array `i` sum to, times `unit`.
  const auto sizes = [=, elements = x.row_elements()](int64_t i, size_t unit) {
    std::vector<size_t> of_ranks;
    const int64_t each = count / group->size();
    const auto* next = reinterpret_cast<const int32_t*>(counts->memory.get()) + i * count;
    for (int rank = 0; rank < group->size(); ++rank) {
      int64_t rows = 0;
      for (int64_t c = 0; c < each; ++c) rows += *next++;
      of_ranks.push_back(static_cast<size_t>(rows * elements) * unit);
    }
    return of_ranks;
  };
  const auto exchange = [=, device = &device_, kind = op.kind](Stream stream) -> Status {
    const int64_t bytes = count * int64_t{sizeof(int32_t)};
    for (int64_t i = 0; i < arrays; ++i) {
      TROUPE_RETURN_IF_ERROR(device->Copy(counts->memory.get() + i * bytes,
                                          from[static_cast<size_t>(i)], bytes, stream));
    }
    TROUPE_RETURN_IF_ERROR(device->Record(counts->there, stream));
    TROUPE_RETURN_IF_ERROR(device->Finish(counts->there));
    const auto on = static_cast<DeviceStream>(stream);
    const size_t element_bytes = SizeOf(type);
    switch (kind) {
      case OpKind::kGatherRouted:
        return group->AllGather(input, output, sizes(0, element_bytes), purpose, on);
      case OpKind::kScatterRouted:
        return group->ReduceScatter(input, output, sizes(0, 1), type, purpose, on);
      default:
        return group->AllToAll(input, output, sizes(0, element_bytes), sizes(1, element_bytes),
                               purpose, on);
    }
  };
  Commands communication;
  communication.emplace_back(Stream::kCommunication, LibraryCommand{exchange, /*host_waits=*/true});
  return AddCommunication(making.commands, op, std::move(communication));
}

}  // namespace troupe::kernels::cuda
