// Makes the commands of collectives. In a group of one rank they are copies.
#include <utility>

#include "kernels/backend/op_sequence.h"
#include "kernels/backend/reduced_ranges.h"
#include "kernels/cuda/kernels/combine_control_words.h"
#include "kernels/cuda/runtime/preparation.h"
#include "kernels/exchange/ring_shift.h"
#include "model/program/control_word.h"

namespace troupe::kernels::cuda {
namespace {

using model::Op;

// `call(stream)` enqueues a collective on the communication stream.
template <typename Call>
Command Collective(Call call) {
  return {Stream::kCommunication, LibraryCommand{[call = std::move(call)](Stream stream) {
            return call(static_cast<DeviceStream>(stream));
          }}};
}

// kControlReduce may lack the attributes of a collective.
Purpose PurposeOfOp(const Op& op) {
  const model::CollectiveAttributes* const attributes = model::FindCollective(op.attributes);
  return attributes == nullptr ? Purpose::kControl : attributes->purpose;
}

}  // namespace

StatusOr<ElementType> ElementTypeOf(model::DType dtype) {
  switch (dtype) {
    case model::DType::kFloat32:
      return ElementType::kFloat32;
    case model::DType::kBFloat16:
      return ElementType::kBfloat16;
    case model::DType::kFloat64:
      return ElementType::kFloat64;
    case model::DType::kInt32:
    case model::DType::kFloat8E4M3:
    case model::DType::kFloat8E5M2:
      break;
  }
  return InvalidArgument("a reduction of {} is not supported", model::Name(dtype));
}

Status Preparation::AddCommunication(Commands* commands, const Op& op, Commands communication) {
  const model::ValueId key = op.outputs.empty() ? op.inputs[0] : op.outputs[0];
  auto found = in_flight_.find(key);
  if (found == in_flight_.end()) {
    TROUPE_ASSIGN_OR_RETURN(const Event begun, device_.MakeEvent());
    TROUPE_ASSIGN_OR_RETURN(const Event over, device_.MakeEvent());
    found = in_flight_.emplace(key, InFlight{begun, over}).first;
  }
  InFlight& in_flight = found->second;
  commands->emplace_back(Stream::kCompute, RecordCommand{in_flight.begun});
  commands->emplace_back(Stream::kCommunication, WaitCommand{in_flight.begun});
  for (Command& command : communication) commands->push_back(std::move(command));
  commands->emplace_back(Stream::kCommunication, RecordCommand{in_flight.over});
  in_flight.purpose = PurposeOfOp(op);
  if (!op.asynchronous) stalls_.AddWait(commands, Stalls::Of(in_flight.purpose), in_flight.over);
  return OkStatus();
}

DeviceCommunicator* Preparation::GroupOf(const Op& op) const {
  return find_communicator_ ? find_communicator_(model::CollectiveOf(op).group) : nullptr;
}

Status Preparation::AddCopiesOfOne(const Making& making, std::span<const CopyCommand> copies) {
  for (const CopyCommand& copy : copies) AddCopy(making.commands, copy.from, copy.to, copy.bytes);
  // The kWait of an asynchronous collective needs its events.
  return making.op.asynchronous ? AddCommunication(making.commands, making.op, {}) : OkStatus();
}

Status Preparation::AddCopyOfOne(const Making& making) {
  const CopyCommand copy = {making.out(0), making.in(0),
                            program_.value(making.op.inputs[0]).bytes()};
  return AddCopiesOfOne(making, std::span(&copy, 1));
}

Status Preparation::MakeAllReduce(const Making& making) {
  const Op& op = making.op;
  DeviceCommunicator* const group = GroupOf(op);
  const auto& attributes = std::get<model::AllReduceAttributes>(op.attributes);
  if (group != nullptr && attributes.wire != model::DType::kFloat32) {
    return AddPackedSum(making.commands, op, making.buffer, group);
  }
  const std::vector<ReducedRange> ranges = ReducedRangesOf(
      program_, op, [&](model::ValueId value) { return Address(value, making.buffer); });
  if (group == nullptr) {
    std::vector<CopyCommand> copies;
    for (const ReducedRange& range : ranges) {
      copies.push_back({range.output, range.input, range.bytes});
    }
    return AddCopiesOfOne(making, copies);
  }
  const Purpose purpose = attributes.purpose;
  const DeviceReduction reduction =
      attributes.reduce == model::ReduceKind::kMax ? DeviceReduction::kMax : DeviceReduction::kSum;
  TROUPE_ASSIGN_OR_RETURN(const ElementType type,
                          ElementTypeOf(program_.value(op.inputs[0]).dtype));
  Commands communication;
  for (const ReducedRange& range : ranges) {
    const size_t count = static_cast<size_t>(range.bytes) / SizeOf(type);
    communication.push_back(Collective([=](DeviceStream stream) {
      return group->AllReduce(range.input, range.output, count, type, reduction, purpose, stream);
    }));
  }
  return AddCommunication(making.commands, op, std::move(communication));
}

Status Preparation::MakeReduceScatter(const Making& making) {
  const Op& op = making.op;
  DeviceCommunicator* const group = GroupOf(op);
  if (group == nullptr) return AddCopyOfOne(making);
  const auto& attributes = std::get<model::ReduceScatterAttributes>(op.attributes);
  if (attributes.wire != model::DType::kFloat32) {
    return AddPackedSum(making.commands, op, making.buffer, group);
  }
  const model::Value& x = program_.value(op.inputs[0]);
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOf(x.dtype));
  return AddCommunication(making.commands, op,
                          {Collective([=, input = making.in(0), output = making.out(0),
                                       counts = BlockElements(x, attributes.cut, group->size()),
                                       purpose = attributes.purpose](DeviceStream stream) {
                            return group->ReduceScatter(input, output, counts, type, purpose,
                                                        stream);
                          })});
}

Status Preparation::MakeAllGather(const Making& making) {
  const Op& op = making.op;
  DeviceCommunicator* const group = GroupOf(op);
  if (group == nullptr) return AddCopyOfOne(making);
  const auto& attributes = std::get<model::AllGatherAttributes>(op.attributes);
  const model::Value& whole = program_.value(op.outputs[0]);
  std::vector<size_t> bytes = BlockElements(whole, attributes.cut, group->size());
  for (size_t& block : bytes) block *= static_cast<size_t>(model::SizeOf(whole.dtype));
  return AddCommunication(making.commands, op,
                          {Collective([=, input = making.in(0), output = making.out(0),
                                       purpose = attributes.purpose](DeviceStream stream) {
                            return group->AllGather(input, output, bytes, purpose, stream);
                          })});
}

Status Preparation::MakeShift(const Making& making) {
  const Op& op = making.op;
  DeviceCommunicator* const group = GroupOf(op);
  if (group == nullptr) return AddCopyOfOne(making);
  const auto& attributes = std::get<model::ShiftAttributes>(op.attributes);
  const RingShift shift(group->size(), group->rank(), attributes.shift,
                        static_cast<size_t>(program_.value(op.inputs[0]).bytes()));
  return AddCommunication(making.commands, op,
                          {Collective([=, input = making.in(0), output = making.out(0),
                                       purpose = attributes.purpose](DeviceStream stream) {
                            return group->AllToAll(input, output, shift.send_bytes,
                                                   shift.receive_bytes, purpose, stream);
                          })});
}

Status Preparation::MakeAllToAll(const Making& making) {
  const Op& op = making.op;
  DeviceCommunicator* const group = GroupOf(op);
  if (group == nullptr) return AddCopyOfOne(making);
  if (op.inputs.size() > 1) return AddRoutedExchange(making, group);
  const std::vector<size_t> blocks(
      static_cast<size_t>(group->size()),
      static_cast<size_t>(program_.value(op.inputs[0]).bytes() / group->size()));
  return AddCommunication(making.commands, op,
                          {Collective([=, input = making.in(0), output = making.out(0),
                                       purpose = PurposeOfOp(op)](DeviceStream stream) {
                            return group->AllToAll(input, output, blocks, blocks, purpose, stream);
                          })});
}

Status Preparation::MakeWait(const Making& making) {
  const auto begun = in_flight_.find(making.op.inputs[0]);
  if (begun == in_flight_.end()) return Internal("it waits for a collective that was not started");
  stalls_.AddWait(making.commands, Stalls::Of(begun->second.purpose), begun->second.over);
  return OkStatus();
}

Status Preparation::MakeControlReduce(const Making& making) {
  const Op& op = making.op;
  DeviceCommunicator* const all =
      find_communicator_ ? find_communicator_({model::CollectiveGroup::Kind::kAll, 0}) : nullptr;
  if (all == nullptr) return OkStatus();
  constexpr int64_t kLanes = model::kControlLanes;
  auto* const control = reinterpret_cast<double*>(Address(op.inputs[0], 0));
  auto* const words = AllocateForCommunication<double>(kLanes * all->size());
  const std::vector<size_t> bytes(static_cast<size_t>(all->size()), kLanes * sizeof(double));
  Commands communication;
  communication.push_back(Collective([=](DeviceStream stream) {
    return all->AllGather(control, words, bytes, Purpose::kControl, stream);
  }));
  communication.emplace_back(Stream::kCommunication,
                             CombineControlWords(words, all->size(), control));
  return AddCommunication(making.commands, op, std::move(communication));
}

}  // namespace troupe::kernels::cuda
