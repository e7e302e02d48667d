// The directed pipeline links over which a rank's device sends boundary values to, and receives
// them from, the devices of adjacent stages.
//
// Each link has its own stream, because a transfer blocks its stream until the other rank reaches
// the same transfer; it thus blocks that link only. Events order transfers with the compute stream,
// which waits where WaitSend and Receive are called; the host never waits. Thread-safety: that of
// the device.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_PIPELINE_LINKS_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_PIPELINE_LINKS_H_

#include <cstddef>
#include <map>
#include <utility>

#include "base/status.h"
#include "collective/communicator.h"
#include "collective/device_communicator.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/stalls.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"

namespace troupe::kernels::cuda {

class PipelineLinks {
 public:
  // A value in one of its buffers, and its address.
  struct Boundary {
    model::ValueId value;
    int buffer;
    void* address;
    size_t bytes;
  };

  // Both must outlive this object.
  PipelineLinks(Device& device, const Stalls& stalls) : device_(device), stalls_(stalls) {}

  // Makes the events of all boundary values in advance, so that transfers allocate nothing.
  Status Prepare(const model::Program& program, const model::MemoryPlan& plan);
  // `communicator`, the device communicator of `link`, must outlive the enqueued work.
  Status Add(Communicator& link, DeviceCommunicator& communicator);

  // Makes a first transfer along each link. Collective; call after communicators are connected. The
  // first transfer between two ranks may block the host until the other rank reaches it. Here all
  // ranks follow the same order; within a step they could deadlock.
  Status Connect();

  // Resets the record of transfers in flight: work enqueued next does not continue the work
  // enqueued last.
  void Restart();

  // As in Executable. Errors: INTERNAL if the value's last transfer is still in flight, or if the
  // link was not added.
  Status Send(const Boundary& boundary, Communicator& link);
  Status WaitSend(model::ValueId value, int buffer);
  Status PostReceive(const Boundary& boundary, Communicator& link);
  Status Receive(const Boundary& boundary, Communicator& link);

 private:
  struct Link {
    DeviceCommunicator* communicator;
    Stream stream;
    Event ready;  // the compute stream's work that precedes a transfer
  };
  struct Transfer {
    Event over;
    bool in_flight = false;  // the compute stream has not waited for it
  };

  // Enqueues `move` on the link's stream, after all work enqueued on the compute stream so far.
  template <typename Move>
  Status Begin(const Boundary& boundary, Communicator& link, const Move& move);
  // Makes the compute stream wait for the transfer; `kind` is one of Stalls.
  Status End(Transfer* transfer, int kind);

  Device& device_;
  const Stalls& stalls_;
  std::map<Communicator*, Link> links_;
  DeviceMemory greetings_;                                        // buffers of the first transfers
  std::map<std::pair<model::ValueId, int>, Transfer> transfers_;  // by value and buffer
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_PIPELINE_LINKS_H_
