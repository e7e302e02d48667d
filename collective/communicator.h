// One ordered group of ranks along one mesh axis, and the collective operations among them: what
// kernels and the executor see of collectives. Made by a CollectiveNetwork (collective/network.h),
// which owns it.
//
// Order: every rank of a group issues the same operations in the same order; each gets the next
// sequence number. Operations start in the order of issue and may overlap. A send matches the
// receive of the same sequence number, so a group that carries point-to-point traffic is a directed
// edge of two ranks with nothing else on it.
//
// Determinism: the algorithm is a pure function of (operation, bytes, ranks) and fixes the order of
// every reduction. Same inputs give the same bits from run to run, and all ranks end with the same
// bits.
//
// Limits: every wait ends by completion, by abort, or by the network's hang limit. The operation
// that hits the hang limit aborts the whole network with DEADLINE_EXCEEDED naming operation, axis,
// purpose, group, sequence number and the ranks that did not arrive. After an abort every pending
// and future operation returns the abort's status. The contents of buffers of failed operations are
// unspecified, and they must stay allocated until the network is closed.
//
// Progress: a synchronous operation runs in the caller's thread from start to end. Operations begun
// by a Start function go on while the caller computes: the network's progress thread (made at the
// first such call that does not finish at once) sleeps on the transport's event descriptor and
// takes the next step of whatever arrived, reductions included. Over UCX every message is sent
// eagerly: on one host a send up to about 0.5 MB is over when StartSend returns
// (ucx/ucx_transport.h), so pipeline activations leave without the sender's further help.
//
// Groups of one rank are legal: reductions leave data as they are, gathers copy.
//
// Thread-safety: operations of one communicator are issued by one thread at a time; different
// communicators of a network may be used by different threads at once; handles may be waited for by
// any one thread.
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
#include "collective/operation.h"
#include "collective/reduction.h"

namespace troupe {

namespace collective_internal {
class Engine;
struct ActiveOperation;
struct Group;
struct Request;
}  // namespace collective_internal

// A started operation. Movable. One that is destroyed or overwritten unwaited waits first, so that
// no buffer is in use after its handle is gone.
class CollectiveHandle {
 public:
  // Already finished, OK.
  CollectiveHandle() = default;
  CollectiveHandle(CollectiveHandle&& other) noexcept;
  CollectiveHandle& operator=(CollectiveHandle&& other) noexcept;
  ~CollectiveHandle();

  // True once finished or failed. Makes progress; never blocks.
  bool Test();

  // Waits until finished, failed, aborted or at the hang limit. A second call returns the same
  // status.
  Status Wait();

  // As Wait, but at `deadline` returns DEADLINE_EXCEEDED with the operation still pending; it can
  // be waited for again.
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

  int rank() const { return rank_; }  // of the caller, in the group
  int size() const { return size_; }
  const std::string& axis() const;  // "tensor", "pipe", …
  const std::string& name() const;  // unique in the network, such as "tensor/0" or "pipe/0>1"
  std::span<const int> global_ranks() const;  // in group order

  // In all functions below `purpose` defaults to the group's own. Counts are elements; per-rank
  // counts are in group order, size() of them.

  // data[i] = reduction over ranks of data[i]; in place. data: `count` elements.
  Status AllReduce(void* data, size_t count, const Reduction& reduction,
                   std::optional<Purpose> purpose = {});
  CollectiveHandle StartAllReduce(void* data, size_t count, const Reduction& reduction,
                                  std::optional<Purpose> purpose = {});

  // output[i] = reduction over ranks of block rank() of data. data: size() blocks of `count`
  // elements (or of counts[r], one after the other), overwritten: its contents are unspecified
  // afterwards. output: one block; may be block rank() of data itself, but must not overlap data in
  // any other way.
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
  // output: the sum over ranks. input may be this rank's block of output, but must not overlap
  // output in any other way.
  Status AllGather(const void* input, void* output, size_t bytes,
                   std::optional<Purpose> purpose = {});
  Status AllGather(const void* input, void* output, std::span<const size_t> bytes_by_rank,
                   std::optional<Purpose> purpose = {});
  CollectiveHandle StartAllGather(const void* input, void* output, size_t bytes,
                                  std::optional<Purpose> purpose = {});
  CollectiveHandle StartAllGather(const void* input, void* output,
                                  std::span<const size_t> bytes_by_rank,
                                  std::optional<Purpose> purpose = {});

  // Block r of input goes to rank r; block r of output comes from rank r. Blocks are `bytes` each,
  // or send_bytes[r] and receive_bytes[r] one after the other; what r sends to us must be
  // receive_bytes[r] (a difference is an error when both are positive). input and output must not
  // overlap.
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

  // data of rank `root` on all.
  Status Broadcast(void* data, size_t bytes, int root, std::optional<Purpose> purpose = {});
  CollectiveHandle StartBroadcast(void* data, size_t bytes, int root,
                                  std::optional<Purpose> purpose = {});

  // To and from one other rank of the group. The peer's matching call has the same sequence number
  // and size. A send may finish only when the peer has received it, so two ranks that send to each
  // other do so asynchronously.
  Status Send(const void* data, size_t bytes, int to, std::optional<Purpose> purpose = {});
  Status Receive(void* data, size_t bytes, int from, std::optional<Purpose> purpose = {});
  CollectiveHandle StartSend(const void* data, size_t bytes, int to,
                             std::optional<Purpose> purpose = {});
  CollectiveHandle StartReceive(void* data, size_t bytes, int from,
                                std::optional<Purpose> purpose = {});

  // Returns once every rank has called it.
  Status Barrier(std::optional<Purpose> purpose = {});

  // Compares a digest of what each rank is about to do (see collective/digest.h) with purpose
  // `start`. Returns FAILED_PRECONDITION on every rank, naming those that differ from the most
  // common digest (of equally common ones, that of the lowest rank).
  Status CompareDigest(uint64_t digest);

  // Digest of the operations issued so far, this rank's part: operation, group, bytes, reduction,
  // purpose, in order. On a directed edge send and receive count as the same.
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
