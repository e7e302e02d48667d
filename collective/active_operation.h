// One operation under way: runs a step list over a transport. Knows nothing of threads; the engine
// drives it.
#ifndef TROUPE_COLLECTIVE_ACTIVE_OPERATION_H_
#define TROUPE_COLLECTIVE_ACTIVE_OPERATION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "collective/algorithm/steps.h"
#include "collective/group.h"
#include "collective/operation.h"
#include "collective/reduction.h"
#include "collective/transport.h"

namespace troupe {
class EventDescriptor;
}

namespace troupe::collective_internal {

// What the caller asked for. Spans and pointers are read before Start returns, except the data
// themselves.
struct Request {
  CollectiveOperation operation = CollectiveOperation::kBarrier;
  Purpose purpose = Purpose::kControl;
  const void* input = nullptr;  // equal to output for operations in place
  void* output = nullptr;
  const Reduction* reduction = nullptr;
  size_t count = 0;  // elements (bytes without a reduction) of a block; ignored if counts given
  bool has_counts = false;
  std::span<const size_t> counts;          // by rank
  std::span<const size_t> receive_counts;  // all_to_all with counts
  int peer = kNobody;                      // root, or the other end
  bool asynchronous = false;
};

struct ActiveOperation {
  // Takes a request; nothing is sent yet. INVALID_ARGUMENT for arguments that do not fit the group.
  Status Describe(Group* of_group, const Request& request);

  // Posts what may be posted and takes what has arrived. Sets `finished`; `status` says how. True
  // if finished.
  bool Advance(Transport& transport);

  // Ends all transfers and finishes with `with`.
  void Fail(Transport& transport, const Status& with);

  // Ranks of the group whose part is awaited.
  std::vector<int> AwaitedRanks() const;

  Group* group = nullptr;
  CollectiveOperation operation = CollectiveOperation::kBarrier;
  Purpose purpose = Purpose::kControl;
  uint64_t sequence = 0;
  size_t bytes = 0;
  MonotonicTime issued;
  uint64_t record = 0;  // in the flight recorder
  // The caller stands in it: all of its time is exposed. An asynchronous one only until it is issued.
  bool held_by_caller = true;
  // A thread stands in it: at once, or since it waits for an asynchronous one.
  bool waited_for = true;
  bool finished = false;
  Status status;
  // Of the thread that is blocked until this finishes; null if none is.
  const EventDescriptor* sleeper = nullptr;

 private:
  // More messages than this are never under way each way, and scratch is this many messages long.
  static constexpr size_t kWindow = 4;

  const StepList& Steps(Algorithm algorithm, int peer);
  void SetOffsets(std::span<const size_t> counts, size_t count, size_t element_bytes, int blocks,
                  std::vector<size_t>* offsets) const;
  void TakeSegment();
  void OpenStep();
  bool AdvanceStep(Transport& transport);
  void Finish();
  uint64_t Tag(int sender) const;
  // Bytes that travel for so many bytes of elements.
  size_t OnWire(size_t element_bytes) const;
  // Posts the message after those that are under way.
  void PostSend(const Step& step, Transport& transport);
  // Puts what message `index` brought where it belongs.
  void TakeMessage(size_t index);
  // Bytes of message `index` of `total` bytes.
  size_t BytesOf(size_t index, size_t total) const;
  std::byte* ScratchOf(size_t index);

  Reduction reduction_;
  const StepList* list_ = nullptr;
  const std::byte* send_base_ = nullptr;
  std::byte* receive_base_ = nullptr;
  std::vector<size_t> send_offsets_;
  std::vector<size_t> own_receive_offsets_;
  const std::vector<size_t>* receive_offsets_ = nullptr;
  bool empty_messages_ = false;  // a barrier's: sent although they have no bytes
  size_t message_bytes_ = 1;
  // What is copied on finishing (reduce_scatter's own block to the output).
  const void* copy_from_ = nullptr;
  void* copy_to_ = nullptr;
  size_t copy_bytes_ = 0;

  // A large all_reduce runs its whole step list on one segment of the data after the other.
  size_t elements_left_ = 0;  // after the segment at hand
  size_t segment_elements_ = 0;

  size_t step_index_ = 0;
  bool step_open_ = false;
  // The open step.
  const std::byte* send_data_ = nullptr;
  std::byte* receive_data_ = nullptr;
  size_t send_total_ = 0;
  size_t receive_total_ = 0;
  size_t sends_ = 0;
  size_t receives_ = 0;
  size_t sends_posted_ = 0;
  size_t sends_done_ = 0;
  size_t receives_posted_ = 0;
  size_t receives_done_ = 0;
  bool reduce_ = false;
  // What is received is reduced into the very blocks that are being sent: only once the send is
  // over.
  bool reduce_last_ = false;
  // What is sent is the sum of this rank's block, not yet what its packed form means.
  bool sends_own_sum_ = false;
  std::array<Transfer, kWindow> send_transfers_;
  std::array<Transfer, kWindow> receive_transfers_;
  std::vector<std::byte> scratch_;
  std::vector<std::byte> packed_;  // messages on their way out, where elements travel in another form
};

}  // namespace troupe::collective_internal

#endif  // TROUPE_COLLECTIVE_ACTIVE_OPERATION_H_
