#include "kernels/cuda/runtime/pipeline_edges.h"

#include <string_view>

namespace troupe::kernels::cuda {

Status PipelineEdges::Prepare(const model::Program& program, const model::MemoryPlan& plan) {
  for (size_t c = 0; c < program.chunks.size(); ++c) {
    const model::ChunkInterface& chunk = program.chunks[c];
    for (const model::ValueId value :
         {chunk.input, chunk.output, chunk.output_gradient, chunk.input_gradient}) {
      if (value == model::kNoValue) continue;
      for (int buffer = 0; buffer < plan.buffers[c]; ++buffer) {
        TROUPE_ASSIGN_OR_RETURN(const Event over, device_.MakeEvent());
        transfers_.emplace(std::pair(value, buffer), Transfer{over});
      }
    }
  }
  return OkStatus();
}

Status PipelineEdges::Add(Communicator& edge, DeviceCommunicator& communicator) {
  TROUPE_ASSIGN_OR_RETURN(const Stream stream, device_.MakeStream());
  TROUPE_ASSIGN_OR_RETURN(const Event ready, device_.MakeEvent());
  edges_.emplace(&edge, Edge{&communicator, stream, ready});
  return OkStatus();
}

Status PipelineEdges::Connect() {
  if (edges_.empty()) return OkStatus();
  constexpr size_t kBytes = 16;
  TROUPE_ASSIGN_OR_RETURN(greetings_,
                          device_.Allocate(kBytes * static_cast<int64_t>(edges_.size())));
  std::map<std::string_view, const Edge*> by_name;
  for (const auto& [host, edge] : edges_) by_name.emplace(host->name(), &edge);
  char* greeting = greetings_.get();
  for (const auto& [name, edge] : by_name) {
    DeviceCommunicator& communicator = *edge->communicator;
    const auto stream = static_cast<DeviceStream>(edge->stream);
    TROUPE_RETURN_IF_ERROR(
        communicator.rank() == 0
            ? communicator.Send(greeting, kBytes, 1, Purpose::kStart, stream)
            : communicator.Receive(greeting, kBytes, 0, Purpose::kStart, stream));
    TROUPE_RETURN_IF_ERROR(device_.Record(edge->ready, edge->stream));
    TROUPE_RETURN_IF_ERROR(device_.WaitFor(edge->ready, Stream::kCompute));
    greeting += kBytes;
  }
  return OkStatus();
}

void PipelineEdges::Restart() {
  for (auto& [place, transfer] : transfers_) transfer.under_way = false;
}

template <typename Move>
Status PipelineEdges::Begin(const Boundary& boundary, Communicator& edge, const Move& move) {
  const auto found = edges_.find(&edge);
  if (found == edges_.end())
    return Internal("{} is not a pipeline link of this executable", edge.name());
  const auto [communicator, stream, ready] = found->second;
  Transfer& transfer = transfers_.at({boundary.value, boundary.buffer});
  if (transfer.under_way) {
    return Internal("{}: the last transfer of buffer {} is still in flight", edge.name(),
                    boundary.buffer);
  }
  TROUPE_RETURN_IF_ERROR(device_.Record(ready, Stream::kCompute));
  TROUPE_RETURN_IF_ERROR(device_.WaitFor(ready, stream));
  TROUPE_RETURN_IF_ERROR(move(*communicator, static_cast<DeviceStream>(stream)));
  TROUPE_RETURN_IF_ERROR(device_.Record(transfer.over, stream));
  transfer.under_way = true;
  return OkStatus();
}

Status PipelineEdges::End(Transfer* transfer, int kind) {
  transfer->under_way = false;
  return stalls_.Wait(kind, transfer->over);
}

Status PipelineEdges::Send(const Boundary& boundary, Communicator& edge) {
  return Begin(boundary, edge, [&](DeviceCommunicator& communicator, DeviceStream stream) {
    return communicator.Send(boundary.address, boundary.bytes, 1, Purpose::kPipe, stream);
  });
}

Status PipelineEdges::WaitSend(model::ValueId value, int buffer) {
  Transfer& transfer = transfers_.at({value, buffer});
  return transfer.under_way ? End(&transfer, Stalls::Of(Purpose::kPipe)) : OkStatus();
}

Status PipelineEdges::PostReceive(const Boundary& boundary, Communicator& edge) {
  return Begin(boundary, edge, [&](DeviceCommunicator& communicator, DeviceStream stream) {
    return communicator.Receive(boundary.address, boundary.bytes, 0, Purpose::kPipe, stream);
  });
}

Status PipelineEdges::Receive(const Boundary& boundary, Communicator& edge) {
  Transfer& transfer = transfers_.at({boundary.value, boundary.buffer});
  if (!transfer.under_way) TROUPE_RETURN_IF_ERROR(PostReceive(boundary, edge));
  return End(&transfer, Stalls::kReceives);
}

}  // namespace troupe::kernels::cuda
