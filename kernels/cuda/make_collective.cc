// Makes the commands of collectives. In a group of one rank they are copies.
#include <utility>

#include "kernels/cuda/control_word.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/preparation.h"
#include "kernels/op_sequence.h"
#include "kernels/reduced_ranges.h"
#include "kernels/ring_shift.h"
#include "model/program/control_word.h"

namespace troupe::kernels::cuda {
namespace {

using model::Op;
using model::OpKind;

// `call(stream)` enqueues a collective on the communication stream.
template <typename Call>
Command Collective(Call call) {
  return {Stream::kCommunication, LibraryCommand{[call = std::move(call)](Stream stream) {
            return call(static_cast<DeviceStream>(stream));
          }}};
}

// kControlReduce may lack the attributes of a collective.
Purpose PurposeOfOp(const Op& op) {
  const auto* const attributes = std::get_if<model::CollectiveAttributes>(&op.attributes);
  return attributes == nullptr ? Purpose::kControl : PurposeOf(attributes->purpose);
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
  return InvalidArgument("no reduction of {}", model::Name(dtype));
}

Status Preparation::AddCommunication(Commands* commands, const Op& op, Commands communication) {
  const model::ValueId key = op.outputs.empty() ? op.inputs[0] : op.outputs[0];
  auto found = under_way_.find(key);
  if (found == under_way_.end()) {
    TROUPE_ASSIGN_OR_RETURN(const Event begun, device_.MakeEvent());
    TROUPE_ASSIGN_OR_RETURN(const Event over, device_.MakeEvent());
    found = under_way_.emplace(key, UnderWay{begun, over}).first;
  }
  UnderWay& under_way = found->second;
  commands->emplace_back(Stream::kCompute, RecordCommand{under_way.begun});
  commands->emplace_back(Stream::kCommunication, WaitCommand{under_way.begun});
  for (Command& command : communication) commands->push_back(std::move(command));
  commands->emplace_back(Stream::kCommunication, RecordCommand{under_way.over});
  under_way.purpose = PurposeOfOp(op);
  if (!op.asynchronous) stalls_.AddWait(commands, Stalls::Of(under_way.purpose), under_way.over);
  return OkStatus();
}

Status Preparation::AddCollective(Commands* commands, const Op& op, int buffer) {
  const auto& attributes = std::get<model::CollectiveAttributes>(op.attributes);
  DeviceCommunicator* const group =
      find_communicator_ ? find_communicator_(attributes.group) : nullptr;
  if (group == nullptr) return AddCollectiveOfOne(commands, op, buffer);
  const model::Value& x = program_.value(op.inputs[0]);
  char* const input = Address(op.inputs[0], buffer);
  char* const output = Address(op.outputs[0], buffer);
  const Purpose purpose = PurposeOf(attributes.purpose);
  if (attributes.wire != model::DType::kFloat32) return AddPackedSum(commands, op, buffer, group);
  Commands communication;
  switch (op.kind) {
    case OpKind::kAllReduce: {
      const DeviceReduction reduction = attributes.reduce == model::ReduceKind::kMax
                                            ? DeviceReduction::kMax
                                            : DeviceReduction::kSum;
      TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOf(x.dtype));
      for (const ReducedRange& range : ReducedRangesOf(
               program_, op, [&](model::ValueId value) { return Address(value, buffer); })) {
        const size_t count = static_cast<size_t>(range.bytes) / SizeOf(type);
        communication.push_back(Collective([=](DeviceStream stream) {
          return group->AllReduce(range.input, range.output, count, type, reduction, purpose, stream);
        }));
      }
      break;
    }
    case OpKind::kReduceScatter: {
      TROUPE_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOf(x.dtype));
      communication.push_back(Collective(
          [=, counts = BlockElements(x, attributes.cut, group->size())](DeviceStream stream) {
            return group->ReduceScatter(input, output, counts, type, purpose, stream);
          }));
      break;
    }
    case OpKind::kAllGather: {
      const model::Value& whole = program_.value(op.outputs[0]);
      std::vector<size_t> bytes = BlockElements(whole, attributes.cut, group->size());
      for (size_t& block : bytes) block *= static_cast<size_t>(model::SizeOf(whole.dtype));
      communication.push_back(Collective([=](DeviceStream stream) {
        return group->AllGather(input, output, bytes, purpose, stream);
      }));
      break;
    }
    case OpKind::kShift: {
      const RingShift shift(group->size(), group->rank(), attributes.shift,
                            static_cast<size_t>(x.bytes()));
      communication.push_back(Collective([=](DeviceStream stream) {
        return group->AllToAll(input, output, shift.send_bytes, shift.receive_bytes, purpose, stream);
      }));
      break;
    }
    case OpKind::kAllToAll: {
      if (op.inputs.size() > 1) return AddRoutedExchange(commands, op, buffer, group);
      const std::vector<size_t> blocks(static_cast<size_t>(group->size()),
                                       static_cast<size_t>(x.bytes() / group->size()));
      communication.push_back(Collective([=](DeviceStream stream) {
        return group->AllToAll(input, output, blocks, blocks, purpose, stream);
      }));
      break;
    }
    case OpKind::kGatherRouted:
    case OpKind::kScatterRouted:
      return AddRoutedExchange(commands, op, buffer, group);
    case OpKind::kExchangeHeads:
    case OpKind::kRelayout:
      return AddRowExchange(commands, op, buffer, group);
    default:
      return Internal("{} is no collective", model::Name(op.kind));
  }
  return AddCommunication(commands, op, std::move(communication));
}

Status Preparation::AddCollectiveOfOne(Commands* commands, const Op& op, int buffer) {
  switch (op.kind) {
    case OpKind::kAllReduce:
      for (const ReducedRange& range : ReducedRangesOf(
               program_, op, [&](model::ValueId value) { return Address(value, buffer); })) {
        AddCopy(commands, range.input, range.output, range.bytes);
      }
      break;
    case OpKind::kGatherRouted:
    case OpKind::kScatterRouted: {
      const OpArguments arguments(program_, op,
                                  [&](model::ValueId value) { return Address(value, buffer); });
      commands->emplace_back(Stream::kCompute, CopyRoutedRows(arguments.CopyRoutedRows()));
      break;
    }
    default:
      AddCopy(commands, Address(op.inputs[0], buffer), Address(op.outputs[0], buffer),
              program_.value(op.inputs[0]).bytes());
  }
  // The kWait of an asynchronous collective needs its events.
  return op.asynchronous ? AddCommunication(commands, op, {}) : OkStatus();
}

Status Preparation::AddControlReduce(Commands* commands, const Op& op) {
  DeviceCommunicator* const all =
      find_communicator_ ? find_communicator_({model::CollectiveGroup::Kind::kAll, 0}) : nullptr;
  if (all == nullptr) return OkStatus();
  constexpr int64_t kLanes = model::kControlLanes;
  auto* const control = reinterpret_cast<double*>(Address(op.inputs[0], 0));
  auto* const words = TakeOfCommunication<double>(kLanes * all->size());
  const std::vector<size_t> bytes(static_cast<size_t>(all->size()), kLanes * sizeof(double));
  Commands communication;
  communication.push_back(Collective([=](DeviceStream stream) {
    return all->AllGather(control, words, bytes, Purpose::kControl, stream);
  }));
  communication.emplace_back(Stream::kCommunication,
                             CombineControlWords(words, all->size(), control));
  return AddCommunication(commands, op, std::move(communication));
}

}  // namespace troupe::kernels::cuda
