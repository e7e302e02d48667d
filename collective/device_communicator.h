// Collectives between device memories, enqueued on a device stream: the interface that the CUDA
// backend uses. There is one per group of ranks, in addition to the group's Communicator
// (collective/communicator.h), which carries the host's messages.
//
// Order and determinism are those of Communicator. A function returns when its operation is
// enqueued; the operation runs when the stream reaches it. Buffers must stay valid until the stream
// has completed the operation. A failure on the stream fails every wait for that stream.
// Thread-safety: Abort from any thread, all other functions from one thread.
#ifndef TROUPE_COLLECTIVE_DEVICE_COMMUNICATOR_H_
#define TROUPE_COLLECTIVE_DEVICE_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "collective/algorithm/operation.h"

namespace troupe {

// The element type of a reduction; operations that only move data count bytes.
enum class ElementType : uint8_t { kFloat32, kBfloat16, kFloat64 };
size_t SizeOf(ElementType type);  // bytes
enum class DeviceReduction : uint8_t { kSum, kMax };

// A stream of the device, by the device library's number: 0 computes, 1 communicates, 2 copies;
// streams from 3 on belong to pipeline links.
using DeviceStream = int;

class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Connects to the other members. Collective; call after the host's Communicator is connected.
  // Returns the errors of the host's Communicator, and UNAVAILABLE for errors of the device
  // library.
  virtual Status Connect() = 0;

  // output[i] = reduction over ranks of input[i]; output may equal input. INVALID_ARGUMENT if the
  // reduction is not supported for `type`.
  virtual Status AllReduce(const void* input, void* output, size_t count, ElementType type,
                           DeviceReduction reduction, Purpose purpose, DeviceStream stream) = 0;
  // output = block rank() of the sum of `input` over ranks; `input` holds consecutive blocks of
  // `counts` elements. output may be block rank() of input; the rest of input is unchanged.
  virtual Status ReduceScatter(const void* input, void* output, std::span<const size_t> counts,
                               ElementType type, Purpose purpose, DeviceStream stream) = 0;
  // output = the blocks of all ranks, of bytes[r] bytes each; input may be this rank's block of
  // output.
  virtual Status AllGather(const void* input, void* output, std::span<const size_t> bytes,
                           Purpose purpose, DeviceStream stream) = 0;
  // Block r of input is sent to rank r; block r of output is received from it. input and output do
  // not overlap.
  virtual Status AllToAll(const void* input, void* output, std::span<const size_t> send_bytes,
                          std::span<const size_t> receive_bytes, Purpose purpose,
                          DeviceStream stream) = 0;

  // Send to and receive from one other rank of the group; its call must match. The stream may block
  // until the peer's stream reaches the matching operation, so streams that wait for each other in
  // a cycle deadlock: each directed pipeline link has its own stream.
  virtual Status Send(const void* data, size_t bytes, int to, Purpose purpose,
                      DeviceStream stream) = 0;
  virtual Status Receive(void* data, size_t bytes, int from, Purpose purpose,
                         DeviceStream stream) = 0;

  // Makes pending and future operations of this rank's device fail. The other members must abort
  // too.
  virtual void Abort() = 0;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_DEVICE_COMMUNICATOR_H_
