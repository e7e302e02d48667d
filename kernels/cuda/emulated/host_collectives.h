// Collectives of emulated devices: enqueued on a stream and executed by the host's Communicator
// when the stream reaches them.
#ifndef TROUPE_KERNELS_CUDA_EMULATED_HOST_COLLECTIVES_H_
#define TROUPE_KERNELS_CUDA_EMULATED_HOST_COLLECTIVES_H_

#include <atomic>
#include <functional>
#include <string_view>

#include "collective/communicator.h"
#include "collective/device_communicator.h"
#include "kernels/cuda/emulated/emulated_device.h"

namespace troupe::kernels::cuda::emulator {

// An operation starts when the thread that waits for the device reaches it. Other streams then
// continue: at once for a send or receive, after some time for a collective of all ranks of a
// group, so that the order of streams is rarely random. An operation in flight ends with the host's
// network, not with Abort.
class HostCollectives : public DeviceCommunicator {
 public:
  // Both must outlive this object, and this object the work on the device's streams.
  HostCollectives(EmulatedDevice& device, Communicator& host) : device_(device), host_(host) {}

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  Status Connect() override { return OkStatus(); }
  Status AllReduce(const void* input, void* output, size_t count, ElementType type,
                   DeviceReduction reduction, Purpose purpose, DeviceStream stream) override;
  Status ReduceScatter(const void* input, void* output, std::span<const size_t> counts,
                       ElementType type, Purpose purpose, DeviceStream stream) override;
  Status AllGather(const void* input, void* output, std::span<const size_t> bytes, Purpose purpose,
                   DeviceStream stream) override;
  Status AllToAll(const void* input, void* output, std::span<const size_t> send_bytes,
                  std::span<const size_t> receive_bytes, Purpose purpose,
                  DeviceStream stream) override;
  Status Send(const void* data, size_t bytes, int to, Purpose purpose,
              DeviceStream stream) override;
  Status Receive(void* data, size_t bytes, int from, Purpose purpose, DeviceStream stream) override;
  void Abort() override { aborted_.store(true); }

 private:
  Status Enqueue(std::string_view name, size_t bytes, Duration patience,
                 std::function<CollectiveHandle()> begin, DeviceStream stream);

  EmulatedDevice& device_;
  Communicator& host_;
  std::atomic<bool> aborted_ = false;
};

}  // namespace troupe::kernels::cuda::emulator

#endif  // TROUPE_KERNELS_CUDA_EMULATED_HOST_COLLECTIVES_H_
