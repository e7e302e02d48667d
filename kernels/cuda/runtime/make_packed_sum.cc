// Makes the commands of reductions whose terms are sent as bfloat16 (AllReduceAttributes::wire):
// each rank sends the terms of a block to the rank that sums this block.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/backend/op_sequence.h"
#include "kernels/backend/reduced_ranges.h"
#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/kernels/packed_sum.h"
#include "kernels/cuda/runtime/preparation.h"

namespace troupe::kernels::cuda {
namespace {

using model::Op;
using model::OpKind;

constexpr int64_t kWireBytes = 2;

// Working memory of one reduction.
struct Buffers {
  char* packed;  // terms that other ranks sum
  char* others;  // terms of other ranks that this rank sums
};

// Receives the terms of this rank's block from all ranks and writes their sum to `sum`, or the
// rounded sum to `rounded`. `counts` are the elements of each rank's block.
void AddSum(Commands* commands, DeviceCommunicator* group, const float* input,
            const std::vector<size_t>& counts, const Buffers& buffers, Purpose purpose, float* sum,
            void* rounded) {
  const auto own = static_cast<size_t>(group->rank());
  int64_t begin = 0, total = 0;
  std::vector<size_t> send, receive;
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    if (rank < own) begin += static_cast<int64_t>(counts[rank]);
    total += static_cast<int64_t>(counts[rank]);
    send.push_back(rank == own ? 0 : counts[rank] * kWireBytes);
    receive.push_back(rank == own ? 0 : counts[own] * kWireBytes);
  }
  const auto count = static_cast<int64_t>(counts[own]);
  const int64_t after = total - begin - count;
  if (begin > 0) {
    commands->emplace_back(Stream::kCommunication, Cast({input, buffers.packed, begin}));
  }
  if (after > 0) {
    commands->emplace_back(
        Stream::kCommunication,
        Cast({input + begin + count, buffers.packed + begin * kWireBytes, after}));
  }
  const auto exchange = [=](Stream stream) {
    return group->AllToAll(buffers.packed, buffers.others, send, receive, purpose,
                           static_cast<DeviceStream>(stream));
  };
  commands->emplace_back(Stream::kCommunication, LibraryCommand{exchange});
  if (count == 0) return;
  commands->emplace_back(Stream::kCommunication, SumPacked({.own = input + begin,
                                                            .others = buffers.others,
                                                            .sum = sum,
                                                            .packed = rounded,
                                                            .count = count,
                                                            .ranks = group->size(),
                                                            .rank = group->rank()}));
}

// The blocks of a reduction over all ranks: multiples of kUnit if there are many elements, as on
// the host (collective/algorithm/choice.h). The host also splits arrays longer than its segments,
// so there an element may be summed by another rank than here.
constexpr int64_t kUnit = 16;
std::vector<size_t> BalancedCounts(int64_t elements, int ranks) {
  const int64_t unit = elements >= kUnit * ranks * kUnit ? kUnit : 1;
  const int64_t units = (elements + unit - 1) / unit;
  std::vector<size_t> counts;
  for (int rank = 0; rank < ranks; ++rank) {
    const model::Range range = model::BalancedRange(units, ranks, rank);
    counts.push_back(
        static_cast<size_t>(std::min(elements, range.end * unit) - range.begin * unit));
  }
  return counts;
}

}  // namespace

Status Preparation::AddPackedSum(Commands* commands, const Op& op, int buffer,
                                 DeviceCommunicator* group) {
  const model::Value& x = program_.value(op.inputs[0]);
  if (WireOf(op) != model::DType::kBFloat16 || x.dtype != model::DType::kFloat32 ||
      ReduceOf(op) != model::ReduceKind::kSum) {
    return InvalidArgument("a reduction of {} that is sent as {} is not supported",
                           model::Name(x.dtype), model::Name(WireOf(op)));
  }
  const Purpose purpose = model::CollectiveOf(op).purpose;
  const int ranks = group->size();
  const auto floats = [](char* address) { return reinterpret_cast<float*>(address); };
  Commands communication;
  if (const auto* const scatter = std::get_if<model::ReduceScatterAttributes>(&op.attributes)) {
    const std::vector<size_t> counts = BlockElements(x, scatter->cut, ranks);
    const auto own = static_cast<int64_t>(counts[static_cast<size_t>(group->rank())]);
    const Buffers buffers = {AllocateBytesForCommunication((x.elements() - own) * kWireBytes),
                             AllocateBytesForCommunication((ranks - 1) * own * kWireBytes)};
    AddSum(&communication, group, floats(Address(op.inputs[0], buffer)), counts, buffers, purpose,
           floats(Address(op.outputs[0], buffer)), nullptr);
    return AddCommunication(commands, op, std::move(communication));
  }
  const std::vector<ReducedRange> ranges =
      ReducedRangesOf(program_, op, [&](model::ValueId value) { return Address(value, buffer); });
  int64_t most = 0;
  for (const ReducedRange& range : ranges)
    most = std::max(most, range.bytes / int64_t{sizeof(float)});
  // Ranges are reduced one after another in the same working memory.
  const int64_t block = (most + ranks - 1) / ranks + kUnit;
  const Buffers buffers = {AllocateBytesForCommunication(most * kWireBytes),
                           AllocateBytesForCommunication((ranks - 1) * block * kWireBytes)};
  char* const rounded = AllocateBytesForCommunication(block * kWireBytes);
  char* const whole = AllocateBytesForCommunication(most * kWireBytes);
  for (const ReducedRange& range : ranges) {
    const int64_t elements = range.bytes / int64_t{sizeof(float)};
    if (elements == 0) continue;
    std::vector<size_t> blocks = BalancedCounts(elements, ranks);
    AddSum(&communication, group, floats(range.input), blocks, buffers, purpose, nullptr, rounded);
    for (size_t& bytes : blocks) bytes *= kWireBytes;
    const auto gather = [=](Stream stream) {
      return group->AllGather(rounded, whole, blocks, purpose, static_cast<DeviceStream>(stream));
    };
    communication.emplace_back(Stream::kCommunication, LibraryCommand{gather});
    communication.emplace_back(Stream::kCommunication,
                               Unpack(whole, floats(range.output), elements));
  }
  return AddCommunication(commands, op, std::move(communication));
}

}  // namespace troupe::kernels::cuda
