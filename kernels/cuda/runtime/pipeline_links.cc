#include "kernels/cuda/runtime/pipeline_links.h"

#include <string_view>

namespace troupe::kernels::cuda {

Status PipelineLinks::Prepare(const model::Program& program, const model::MemoryPlan& plan) {
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

Status PipelineLinks::Add(Communicator& link, DeviceCommunicator& communicator) {
  TROUPE_ASSIGN_OR_RETURN(const Stream stream, device_.MakeStream());
  TROUPE_ASSIGN_OR_RETURN(const Event ready, device_.MakeEvent());
  links_.emplace(&link, Link{&communicator, stream, ready});
  return OkStatus();
}

Status PipelineLinks::Connect() {
  if (links_.empty()) return OkStatus();
  constexpr size_t kBytes = 16;
  TROUPE_ASSIGN_OR_RETURN(greetings_,
                          device_.Allocate(kBytes * static_cast<int64_t>(links_.size())));
  std::map<std::string_view, const Link*> by_name;
  for (const auto& [host, link] : links_) by_name.emplace(host->name(), &link);
  char* greeting = greetings_.get();
  for (const auto& [name, link] : by_name) {
    DeviceCommunicator& communicator = *link->communicator;
    const auto stream = static_cast<DeviceStream>(link->stream);
    TROUPE_RETURN_IF_ERROR(
        communicator.rank() == 0
            ? communicator.Send(greeting, kBytes, 1, Purpose::kStart, stream)
            : communicator.Receive(greeting, kBytes, 0, Purpose::kStart, stream));
    TROUPE_RETURN_IF_ERROR(device_.Record(link->ready, link->stream));
    TROUPE_RETURN_IF_ERROR(device_.WaitFor(link->ready, Stream::kCompute));
    greeting += kBytes;
  }
  return OkStatus();
}

void PipelineLinks::Restart() {
  for (auto& [place, transfer] : transfers_) transfer.in_flight = false;
}

template <typename Move>
Status PipelineLinks::Begin(const Boundary& boundary, Communicator& link, const Move& move) {
  const auto found = links_.find(&link);
  if (found == links_.end())
    return Internal("{} is not a pipeline link of this executable", link.name());
  const auto [communicator, stream, ready] = found->second;
  Transfer& transfer = transfers_.at({boundary.value, boundary.buffer});
  if (transfer.in_flight) {
    return Internal("{}: the last transfer of buffer {} is still in flight", link.name(),
                    boundary.buffer);
  }
  TROUPE_RETURN_IF_ERROR(device_.Record(ready, Stream::kCompute));
  TROUPE_RETURN_IF_ERROR(device_.WaitFor(ready, stream));
  TROUPE_RETURN_IF_ERROR(move(*communicator, static_cast<DeviceStream>(stream)));
  TROUPE_RETURN_IF_ERROR(device_.Record(transfer.over, stream));
  transfer.in_flight = true;
  return OkStatus();
}

Status PipelineLinks::End(Transfer* transfer, int kind) {
  transfer->in_flight = false;
  return stalls_.Wait(kind, transfer->over);
}

Status PipelineLinks::Send(const Boundary& boundary, Communicator& link) {
  return Begin(boundary, link, [&](DeviceCommunicator& communicator, DeviceStream stream) {
    return communicator.Send(boundary.address, boundary.bytes, 1, Purpose::kPipe, stream);
  });
}

Status PipelineLinks::WaitSend(model::ValueId value, int buffer) {
  Transfer& transfer = transfers_.at({value, buffer});
  return transfer.in_flight ? End(&transfer, Stalls::Of(Purpose::kPipe)) : OkStatus();
}

Status PipelineLinks::PostReceive(const Boundary& boundary, Communicator& link) {
  return Begin(boundary, link, [&](DeviceCommunicator& communicator, DeviceStream stream) {
    return communicator.Receive(boundary.address, boundary.bytes, 0, Purpose::kPipe, stream);
  });
}

Status PipelineLinks::Receive(const Boundary& boundary, Communicator& link) {
  Transfer& transfer = transfers_.at({boundary.value, boundary.buffer});
  if (!transfer.in_flight) TROUPE_RETURN_IF_ERROR(PostReceive(boundary, link));
  return End(&transfer, Stalls::kReceives);
}

}  // namespace troupe::kernels::cuda
