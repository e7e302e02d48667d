// Collectives among the memories of devices, put onto a stream of the device: what the CUDA backend sees of them. One for
// each group of ranks; made beside the group's Communicator (collective/communicator.h), which carries what the host says.
//
// Order and determinism are those of Communicator. Functions return when the operation is on its stream; it runs when the
// stream comes to it. Data must stay where they are until the stream has passed it. What fails there fails whoever waits
// for the stream. Thread-safety: Abort from any thread, the rest from one.
#ifndef TROUPE_COLLECTIVE_DEVICE_COMMUNICATOR_H_
#define TROUPE_COLLECTIVE_DEVICE_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "collective/operation.h"

namespace troupe {

// Of what is reduced; what is only moved is bytes.
enum class ElementType : uint8_t { kFloat32, kBfloat16, kFloat64 };
size_t SizeOf(ElementType type);  // bytes
enum class DeviceReduction : uint8_t { kSum, kMax };

// The device's stream, in the device library's own terms: 0 is what computes, 1 what communicates, 2 what copies; edges of
// a pipeline have streams of their own from there on.
using DeviceStream = int;

class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Reaches the other members; every member calls it, once the host's Communicator is connected. Errors of that, and
  // UNAVAILABLE of the device library.
  virtual Status Connect() = 0;

  // output[i] = reduction over ranks of input[i]; output may be input. INVALID_ARGUMENT where there is no such reduction.
  virtual Status AllReduce(const void* input, void* output, size_t count, ElementType type,
                           DeviceReduction reduction, Purpose purpose, DeviceStream stream) = 0;
  // output = block rank() of the sum of input, which is the blocks of `counts` elements one after the other; output may
  // be that block of input, of which nothing else changes.
  virtual Status ReduceScatter(const void* input, void* output, std::span<const size_t> counts,
                               ElementType type, Purpose purpose, DeviceStream stream) = 0;
  // output = the blocks of all ranks, of `bytes` each; input may be this rank's.
  virtual Status AllGather(const void* input, void* output, std::span<const size_t> bytes,
                           Purpose purpose, DeviceStream stream) = 0;
  // Block r of input goes to rank r, block r of output comes from it. input and output do not overlap.
  virtual Status AllToAll(const void* input, void* output, std::span<const size_t> send_bytes,
                          std::span<const size_t> receive_bytes, Purpose purpose,
                          DeviceStream stream) = 0;

  // To and from one other rank of the group, whose call matches. The stream may stand until the other's comes to it, so
  // ranks whose streams wait for each other in a circle wait for ever: a directed edge has a stream of its own.
  virtual Status Send(const void* data, size_t bytes, int to, Purpose purpose,
                      DeviceStream stream) = 0;
  virtual Status Receive(void* data, size_t bytes, int from, Purpose purpose,
                         DeviceStream stream) = 0;

  // Makes pending and future operations fail, on this rank's device. The other members must do so too.
  virtual void Abort() = 0;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_DEVICE_COMMUNICATOR_H_
