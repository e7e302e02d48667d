// A group's NCCL communicator in non-blocking mode: no call blocks in the library, and every wait
// ends at a limit or by an abort. Created by an NcclNetwork.
//
// The first rank creates the unique id of the group; the host's communicator of the same group,
// which is connected through addresses that the coordinator exchanges, sends it to the others. One
// mutex guards all calls on NCCL's communicator, since NCCL allows no call concurrent with an
// abort.
//
// NCCL ends a communicator, even by an abort, only after every graph that holds its operations is
// destroyed; the owner of captured graphs must destroy them first. Any thread may request an abort,
// so the blocking abort runs in a thread of its own.
#ifndef TROUPE_COLLECTIVE_NCCL_NCCL_COMMUNICATOR_H_
#define TROUPE_COLLECTIVE_NCCL_NCCL_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "collective/communicator.h"
#include "collective/device_communicator.h"
#include "collective/nccl/nccl_environment.h"
#include "collective/nccl/operation_ledger.h"

namespace troupe {

class NcclCommunicator : public DeviceCommunicator {
 public:
  // `environment` and `group` must outlive this object. `on_end` is called first when it ends.
  NcclCommunicator(NcclEnvironment& environment, Communicator& group,
                   std::function<void(NcclCommunicator*)> on_end);
  // Closes the communicator within the network's close limit. If NCCL has not ended it by then, it
  // is left behind.
  ~NcclCommunicator() override;

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  // DEADLINE_EXCEEDED at the limit. Any failure aborts the network.
  Status Connect() override;
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
  // Returns at once.
  void Abort() override;

  // UNAVAILABLE or INTERNAL with NCCL's error; DEADLINE_EXCEEDED names an operation that hangs.
  // From any thread.
  Status Check();
  const OperationLedger& ledger() const { return ledger_; }

 private:
  // The library calls of one operation, given the communicator and the native stream.
  using Call = std::function<nccl::Result(nccl::Comm, nccl::CudaStream)>;
  // Enqueues the operation of `call` on `stream`. Failures abort the network.
  Status Issue(CollectiveOperation operation, size_t bytes, Purpose purpose, DeviceStream stream,
               const Call& call);
  Status TryIssue(int mark, DeviceStream stream, const Call& call);
  // Runs `calls` as one, between GroupStart and GroupEnd.
  nccl::Result Grouped(const std::function<nccl::Result()>& calls) const;
  // Runs `call` on the communicator and waits until it is complete, for at most `limit`. After an
  // abort returns the network's status.
  Status Complete(const std::function<nccl::Result(nccl::Comm)>& call, Duration limit);
  Status TryConnect();
  Status Close();

  NcclEnvironment& environment_;
  const NcclLibrary& library_;
  NcclDevice& device_;
  Communicator& group_;
  const std::function<void(NcclCommunicator*)> on_end_;
  OperationLedger ledger_;

  std::mutex mutex_;  // guards the calls on comm_
  nccl::Comm comm_ = nullptr;
  bool aborted_ = false;
  std::future<void> ended_;  // set by an abort of comm_: ready when NCCL has ended it
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NCCL_NCCL_COMMUNICATOR_H_
