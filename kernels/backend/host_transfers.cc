#include "kernels/backend/host_transfers.h"

namespace troupe::kernels {

void HostTransfers::Send(Place place, std::span<const std::byte> bytes, Communicator& link) {
  sends_[place] = link.StartSend(bytes.data(), bytes.size(), 1);
}

Status HostTransfers::WaitSend(Place place) {
  const auto found = sends_.find(place);
  return found == sends_.end() ? OkStatus() : found->second.Wait();
}

void HostTransfers::PostReceive(Place place, std::span<std::byte> bytes, Communicator& link) {
  receives_[place] = link.StartReceive(bytes.data(), bytes.size(), 0);
}

Status HostTransfers::Receive(Place place, std::span<std::byte> bytes, Communicator& link) {
  const auto posted = receives_.find(place);
  if (posted == receives_.end() || !posted->second)
    return link.Receive(bytes.data(), bytes.size(), 0);
  const Status status = posted->second->Wait();
  posted->second.reset();
  return status;
}

}  // namespace troupe::kernels
