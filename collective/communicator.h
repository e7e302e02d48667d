// An ordered group of ranks along one mesh axis and its collective operations. This is the
// interface that kernels and the executor use. A CollectiveNetwork (collective/network.h) creates
// and owns it.
//
// Order: every rank of a group issues the same operations in the same order; each operation gets
// the next sequence number. Operations start in the order of issue and may overlap. A send matches
// the receive with the same sequence number, so a group for point-to-point traffic is a directed
// pipeline link between two ranks and carries nothing else.
//
// Determinism: the algorithm is a pure function of (operation, bytes, ranks) and fixes the order of
// every reduction. The same inputs give the same bits in every run, and all ranks end with the same
// bits.
//
// Limits: every wait ends by completion, by abort, or at the network's hang limit. The operation
// that reaches the hang limit aborts the whole network with DEADLINE_EXCEEDED; the status names
// operation, axis, purpose, group, sequence number and the ranks that did not arrive. After an
// abort every pending and future operation returns the abort's status. The buffers of failed
// operations have unspecified contents and must stay allocated until the network is closed.
//
// Progress: a synchronous operation runs in the caller's thread from start to end. An operation
// begun by a Start function progresses while the caller computes: the network's progress thread
// (created at the first Start that does not finish at once) sleeps on the transport's event
// descriptor and performs the next steps, including reductions, when messages arrive. Over UCX
// every message is sent eagerly: within a host, a send of up to about 0.5 MB is complete when
// StartSend returns (ucx/ucx_transport.h), so pipeline activations need no further work of the
// sender.
//
// Groups of one rank are valid: reductions leave the data unchanged, gathers copy.
//
// Thread-safety: only one thread at a time issues operations of a communicator; different threads
// may use different communicators of a network concurrently; any single thread may wait for a
// handle.
#ifndef TROUPE_COLLECTIVE_COMMUNICATOR_H_
#define TROUPE_COLLECTIVE_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "collective/algorithm/operation.h"
#include "collective/reduction.h"
#include "collective/scope.h"

namespace troupe {

namespace collective_internal {
class Engine;
struct ActiveOperation;
struct Group;
struct Request;
}  // namespace collective_internal

// A started operation. Movable. Destroying or overwriting a handle waits for its operation first,
// so that no buffer is in use after its handle is gone.
class CollectiveHandle {
 public:
  // A finished operation with status OK.
  CollectiveHandle() = default;
  CollectiveHandle(CollectiveHandle&& other) noexcept;
  CollectiveHandle& operator=(CollectiveHandle&& other) noexcept;
  ~CollectiveHandle();

  // True once finished or failed. Makes progress but never blocks.
  bool Test();

  // Waits until the operation finished, failed, was aborted or reached the hang limit. A second
  // call returns the same status.
  Status Wait();

  // Like Wait(), but returns DEADLINE_EXCEEDED at `deadline` if the operation is still pending; the
  // caller may wait for it again.
  Status Wait(MonotonicTime deadline);

 private:
  friend class Communicator;
  friend class collective_internal::Engine;
  CollectiveHandle(collective_internal::Engine* engine,
                   collective_internal::ActiveOperation* operation)
      : engine_(engine), operation_(operation) {}
  explicit CollectiveHandle(Status status) : status_(std::move(status)) {}

  collective_internal::Engine* engine_ = nullptr;
  collective_internal::ActiveOperation* operation_ = nullptr;  // null once finished and released
  Status status_;
};

class Communicator {
 public:
  Communicator(collective_internal::Engine* engine,
               std::unique_ptr<collective_internal::Group> group);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  int rank() const { return rank_; }  // the caller's rank in the group
  int size() const { return size_; }
  const std::string& axis() const;  // "tensor", "pipe", …
  Scope scope() const;
  Purpose purpose() const;          // the default one of its operations
  const std::string& name() const;  // unique in the network, such as "tensor/0" or "pipe/0>1"
  std::span<const int> global_ranks() const;  // in group order

  // In all functions below, `purpose` defaults to the group's own purpose. Counts are in elements;
  // per-rank counts have size() entries in group order.

  // data[i] = reduction over ranks of data[i], in place. data: [count] elements.
  Status AllReduce(void* data, size_t count, const Reduction& reduction,
                   std::optional<Purpose> purpose = {});
  CollectiveHandle StartAllReduce(void* data, size_t count, const Reduction& reduction,
                                  std::optional<Purpose> purpose = {});

  // output[i] = reduction over ranks of element i of block rank(). data: size() consecutive blocks
  // of `count` elements (or of counts[r]); they are overwritten with unspecified contents. output:
  // one block; it may be block rank() of data itself, but must not overlap data in any other way.
  Status ReduceScatter(void* data, void* output, size_t count, const Reduction& reduction,
                       std::optional<Purpose> purpose = {});
  Status ReduceScatter(void* data, void* output, std::span<const size_t> counts,
                       const Reduction& reduction, std::optional<Purpose> purpose = {});
  CollectiveHandle StartReduceScatter(void* data, void* output, size_t count,
                                      const Reduction& reduction,
                                      std::optional<Purpose> purpose = {});
  CollectiveHandle StartReduceScatter(void* data, void* output, std::span<const size_t> counts,
                                      const Reduction& reduction,
                                      std::optional<Purpose> purpose = {});

  // output = the inputs of all ranks in group order. input: `bytes` (or bytes_by_rank[rank()]);
  // output: the sum of the sizes over all ranks. input may be this rank's block of output, but must
  // not overlap output in any other way.
  Status AllGather(const void* input, void* output, size_t bytes,
                   std::optional<Purpose> purpose = {});
  Status AllGather(const void* input, void* output, std::span<const size_t> bytes_by_rank,
                   std::optional<Purpose> purpose = {});
  CollectiveHandle StartAllGather(const void* input, void* output, size_t bytes,
                                  std::optional<Purpose> purpose = {});
  CollectiveHandle StartAllGather(const void* input, void* output,
                                  std::span<const size_t> bytes_by_rank,
                                  std::optional<Purpose> purpose = {});

  // Block r of input is sent to rank r; block r of output is received from rank r. Blocks are
  // `bytes` each, or send_bytes[r] and receive_bytes[r], stored consecutively. The size that rank r
  // sends to this rank must equal receive_bytes[r] (a difference is an error when both are
  // positive). input and output must not overlap.
  Status AllToAll(const void* input, void* output, size_t bytes,
                  std::optional<Purpose> purpose = {});
  Status AllToAll(const void* input, void* output, std::span<const size_t> send_bytes,
                  std::span<const size_t> receive_bytes, std::optional<Purpose> purpose = {});
  CollectiveHandle StartAllToAll(const void* input, void* output, size_t bytes,
                                 std::optional<Purpose> purpose = {});
  CollectiveHandle StartAllToAll(const void* input, void* output,
                                 std::span<const size_t> send_bytes,
                                 std::span<const size_t> receive_bytes,
                                 std::optional<Purpose> purpose = {});

  // Copies the data of rank `root` to all ranks.
  Status Broadcast(void* data, size_t bytes, int root, std::optional<Purpose> purpose = {});

  // Send to and receive from one other rank of the group. The matching call of the peer has the
  // same sequence number and size. A send may block until the peer has received it, so two ranks
  // that send to each other must do so asynchronously.
  Status Send(const void* data, size_t bytes, int to, std::optional<Purpose> purpose = {});
  Status Receive(void* data, size_t bytes, int from, std::optional<Purpose> purpose = {});
  CollectiveHandle StartSend(const void* data, size_t bytes, int to,
                             std::optional<Purpose> purpose = {});
  CollectiveHandle StartReceive(void* data, size_t bytes, int from,
                                std::optional<Purpose> purpose = {});

  // Returns once every rank has called it.
  Status Barrier(std::optional<Purpose> purpose = {});

  // Compares a digest of each rank's planned operations (see collective/digest.h); its purpose is
  // `start`. Returns FAILED_PRECONDITION on every rank and names the ranks that differ from the
  // most common digest (among equally common ones, that of the lowest rank).
  Status CompareDigest(uint64_t digest);

  // The digest of this rank's operations so far: operation, group, bytes, reduction and purpose, in
  // order. On a directed pipeline link send and receive count as the same.
  uint64_t running_digest() const;

 private:
  CollectiveHandle Start(const collective_internal::Request& request);
  Status Run(const collective_internal::Request& request);

  collective_internal::Engine* const engine_;
  const std::unique_ptr<collective_internal::Group> group_;
  const int rank_;
  const int size_;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_COMMUNICATOR_H_
