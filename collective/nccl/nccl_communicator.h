// A group's communicator of NCCL, non-blocking: no call stands in the library, every wait ends at a limit or by an abort.
// Made by an NcclNetwork.
//
// The first rank makes the group's unique id, and the host's communicator of the same group, which is connected through
// addresses that the coordinator exchanges, brings it to the others. What is called on NCCL's communicator is called under
// one mutex, since NCCL admits no call beside an abort.
//
// NCCL ends a communicator, by an abort too, only when every graph is destroyed that holds operations of it: whoever
// captured some destroys the graphs first. So an abort, which any thread may ask for, stands in a thread of its own.
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
#include "collective/nccl/nccl_network.h"
#include "collective/nccl/operation_ledger.h"

namespace troupe {

class NcclCommunicator : public DeviceCommunicator {
 public:
  // Both outlive this.
  NcclCommunicator(NcclNetwork& network, Communicator& group);
  // Closes what is open, within the network's limit for it; what NCCL does not end by then is left behind.
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
  Status Receive(void* data, size_t bytes, int from, Purpose purpose,
                 DeviceStream stream) override;
  // Returns at once.
  void Abort() override;

  // UNAVAILABLE or INTERNAL with NCCL's error, DEADLINE_EXCEEDED naming an operation that has hung. From any thread.
  Status Check();
  const OperationLedger& ledger() const { return ledger_; }

 private:
  // Calls of the library for one operation, given its communicator and the native stream.
  using Call = std::function<nccl::Result(nccl::Comm, nccl::CudaStream)>;
  // Puts what `call` does onto `stream`. Failures abort the network.
  Status Issue(CollectiveOperation operation, size_t bytes, Purpose purpose, DeviceStream stream,
               const Call& call);
  Status TryIssue(int mark, DeviceStream stream, const Call& call);
  // `calls` as one: between GroupStart and GroupEnd.
  nccl::Result Grouped(const std::function<nccl::Result()>& calls) const;
  // Runs `call` on the communicator, and until what it began is done. After an abort the network's status.
  Status Complete(const std::function<nccl::Result(nccl::Comm)>& call, Duration limit);
  Status TryConnect();
  Status Close();

  NcclNetwork& network_;
  const NcclLibrary& library_;
  NcclDevice& device_;
  Communicator& group_;
  OperationLedger ledger_;

  std::mutex mutex_;  // of the calls on comm_
  nccl::Comm comm_ = nullptr;
  bool aborted_ = false;
  std::future<void> ended_;  // once an abort of comm_ was begun: when NCCL is done with it
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NCCL_NCCL_COMMUNICATOR_H_
