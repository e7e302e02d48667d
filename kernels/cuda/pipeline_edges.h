// The directed edges by which a rank's device sends boundary values to the devices of neighbouring stages and receives
// theirs.
//
// An edge has a stream of its own, since one may stand until the other rank's comes to the same transfer: what stands
// holds up that edge alone. Events put transfers in order with the compute stream, which waits where WaitSend and Receive
// say; the host waits nowhere. Thread-safety: that of the device.
#ifndef TROUPE_KERNELS_CUDA_PIPELINE_EDGES_H_
#define TROUPE_KERNELS_CUDA_PIPELINE_EDGES_H_

#include <cstddef>
#include <map>
#include <utility>

#include "base/status.h"
#include "collective/communicator.h"
#include "collective/device_communicator.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/stalls.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"

namespace troupe::kernels::cuda {

class PipelineEdges {
 public:
  // A value in one of its buffers, and where that is.
  struct Boundary {
    model::ValueId value;
    int buffer;
    void* address;
    size_t bytes;
  };

  // Both outlive this.
  PipelineEdges(Device& device, const Stalls& stalls) : device_(device), stalls_(stalls) {}

  // Makes the events of all boundary values, so that transfers make nothing.
  Status Prepare(const model::Program& program, const model::MemoryPlan& plan);
  // `communicator`, the device's twin of `edge`, outlives what is put onto streams.
  Status Add(Communicator& edge, DeviceCommunicator& communicator);

  // Makes a first transfer along each edge; every rank calls it, once communicators are connected. The first transfer
  // between two ranks may hold up the host until the other's comes to it: here in an order that all ranks share, while
  // within a step ranks might wait for each other in a circle.
  Status Connect();

  // Nothing is under way: what is put onto the compute stream next is not that which was put there last.
  void Restart();

  // As of Executable. INTERNAL where a value is sent or posted that is under way, or by an edge that was not added.
  Status Send(const Boundary& boundary, Communicator& edge);
  Status WaitSend(model::ValueId value, int buffer);
  Status PostReceive(const Boundary& boundary, Communicator& edge);
  Status Receive(const Boundary& boundary, Communicator& edge);

 private:
  struct Edge {
    DeviceCommunicator* communicator;
    Stream stream;
    Event ready;  // the compute stream's work that a transfer comes after
  };
  struct Transfer {
    Event over;
    bool under_way = false;  // the compute stream has not waited for it
  };

  // Puts what `move` does onto the edge's stream, after what is on the compute stream so far.
  template <typename Move>
  Status Begin(const Boundary& boundary, Communicator& edge, const Move& move);
  // Makes the compute stream wait for it; `kind`: of Stalls.
  Status End(Transfer* transfer, int kind);

  Device& device_;
  const Stalls& stalls_;
  std::map<Communicator*, Edge> edges_;
  DeviceMemory greetings_;  // of the first transfers
  std::map<std::pair<model::ValueId, int>, Transfer> transfers_;  // of a value in a buffer
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_PIPELINE_EDGES_H_
