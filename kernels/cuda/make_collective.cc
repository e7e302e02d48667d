// The commands of collectives. In a group of one rank they are copies.
#include <utility>

#include "kernels/cuda/preparation.h"
#include "kernels/op_sequence.h"
#include "kernels/reduced_ranges.h"
#include "kernels/ring_shift.h"
#include "model/program/control_word.h"

namespace troupe::kernels::cuda {
namespace {

using model::Op;
using model::OpKind;

ElementType TypeOf(model::DType dtype) {
  switch (dtype) {
    case model::DType::kFloat32:
      return ElementType::kFloat32;
    case model::DType::kBFloat16:
      return ElementType::kBfloat16;
    case model::DType::kFloat64:
      return ElementType::kFloat64;
    case model::DType::kInt32:
      return ElementType::kInt32;
  }
  return ElementType::kByte;
}

}  // namespace

Status Preparation::AddCommunication(Commands* commands, const Op& op,
                                     std::function<Status(DeviceStream)> enqueue) {
  const model::ValueId key = op.outputs.empty() ? op.inputs[0] : op.outputs[0];
  auto found = under_way_.find(key);
  if (found == under_way_.end()) {
    TROUPE_ASSIGN_OR_RETURN(const Event begun, device_.MakeEvent());
    TROUPE_ASSIGN_OR_RETURN(const Event over, device_.MakeEvent());
    found = under_way_.emplace(key, std::pair(begun, over)).first;
  }
  const auto [begun, over] = found->second;
  commands->emplace_back(Stream::kCompute, RecordCommand{begun});
  commands->emplace_back(Stream::kCommunication, WaitCommand{begun});
  const auto on_stream = [enqueue = std::move(enqueue)](Stream stream) {
    return enqueue(static_cast<DeviceStream>(stream));
  };
  commands->emplace_back(Stream::kCommunication, LibraryCommand{on_stream});
  commands->emplace_back(Stream::kCommunication, RecordCommand{over});
  if (!op.asynchronous) commands->emplace_back(Stream::kCompute, WaitCommand{over});
  return OkStatus();
}

Status Preparation::AddCollective(Commands* commands, const Op& op, int buffer) {
  const auto& attributes = std::get<model::CollectiveAttributes>(op.attributes);
  DeviceCommunicator* const group =
      find_communicator_ ? find_communicator_(attributes.group) : nullptr;
  const model::Value& x = program_.value(op.inputs[0]);
  char* const input = Address(op.inputs[0], buffer);
  char* const output = Address(op.outputs[0], buffer);
  const Purpose purpose = PurposeOf(attributes.purpose);
  if (group != nullptr && attributes.wire != model::DType::kFloat32) {
    return InvalidArgument("sums that travel as {} are not there on this device",
                           model::Name(attributes.wire));
  }
  switch (op.kind) {
    case OpKind::kAllReduce: {
      const DeviceReduction reduction = attributes.reduce == model::ReduceKind::kMax
                                            ? DeviceReduction::kMax
                                            : DeviceReduction::kSum;
      const std::vector<ReducedRange> ranges = ReducedRangesOf(
          program_, op, [&](model::ValueId value) { return Address(value, buffer); });
      if (group == nullptr) {
        for (const ReducedRange& range : ranges) {
          AddCopy(commands, range.input, range.output, range.bytes);
        }
        return OkStatus();
      }
      return AddCommunication(commands, op, [=, dtype = x.dtype](DeviceStream stream) {
        for (const ReducedRange& range : ranges) {
          TROUPE_RETURN_IF_ERROR(group->AllReduce(
              range.input, range.output, static_cast<size_t>(range.bytes / model::SizeOf(dtype)),
              TypeOf(dtype), reduction, purpose, stream));
        }
        return OkStatus();
      });
    }
    case OpKind::kReduceScatter: {
      if (group == nullptr) {
        AddCopy(commands, input, output, x.bytes());
        return OkStatus();
      }
      return AddCommunication(
          commands, op,
          [=, type = TypeOf(x.dtype),
           counts = BlockElements(x, attributes.cut, group->size())](DeviceStream stream) {
            return group->ReduceScatter(input, output, counts, type, purpose, stream);
          });
    }
    case OpKind::kAllGather: {
      if (group == nullptr) {
        AddCopy(commands, input, output, x.bytes());
        return OkStatus();
      }
      const model::Value& whole = program_.value(op.outputs[0]);
      std::vector<size_t> bytes = BlockElements(whole, attributes.cut, group->size());
      for (size_t& block : bytes) block *= static_cast<size_t>(model::SizeOf(whole.dtype));
      return AddCommunication(commands, op, [=](DeviceStream stream) {
        return group->AllGather(input, output, bytes, purpose, stream);
      });
    }
    case OpKind::kShift: {
      if (group == nullptr) {
        AddCopy(commands, input, output, x.bytes());
        return OkStatus();
      }
      const RingShift shift(group->size(), group->rank(), attributes.shift,
                            static_cast<size_t>(x.bytes()));
      return AddCommunication(commands, op, [=](DeviceStream stream) {
        return group->AllToAll(input, output, shift.send_bytes, shift.receive_bytes, purpose, stream);
      });
    }
    case OpKind::kAllToAll:
      if (group == nullptr) {
        AddCopy(commands, input, output, x.bytes());
        return OkStatus();
      }
      if (op.inputs.size() == 1) {
        const std::vector<size_t> blocks(static_cast<size_t>(group->size()),
                                         static_cast<size_t>(x.bytes() / group->size()));
        return AddCommunication(commands, op, [=](DeviceStream stream) {
          return group->AllToAll(input, output, blocks, blocks, purpose, stream);
        });
      }
      break;
    default:
      break;
  }
  return Unimplemented("{} among {} ranks is not there on this device", model::Name(op.kind),
                       group == nullptr ? 1 : group->size());
}

Status Preparation::AddControlReduce(Commands* commands, const Op& op) {
  DeviceCommunicator* const all =
      find_communicator_ ? find_communicator_({model::CollectiveGroup::Kind::kAll, 0}) : nullptr;
  if (all == nullptr) return OkStatus();
  auto* const control = reinterpret_cast<double*>(Address(op.inputs[0], 0));
  return AddCommunication(commands, op, [=](DeviceStream stream) {
    struct Lanes {
      int begin, end;
      DeviceReduction reduction;
    };
    for (const Lanes& lanes : {Lanes{0, model::kLastSum + 1, DeviceReduction::kSum},
                               Lanes{model::kLastSum + 1, model::kLastMax + 1, DeviceReduction::kMax},
                               Lanes{model::kLastMax + 1, model::kControlLanes, DeviceReduction::kMin}}) {
      TROUPE_RETURN_IF_ERROR(all->AllReduce(control + lanes.begin, control + lanes.begin,
                                            static_cast<size_t>(lanes.end - lanes.begin),
                                            ElementType::kFloat64, lanes.reduction,
                                            Purpose::kControl, stream));
    }
    return OkStatus();
  });
}

}  // namespace troupe::kernels::cuda
