// One operation in flight: runs a step list over a transport. It has no threads of its own; the
// engine drives it.
//
// Invariants of an open step: sends_done_ <= sends_posted_ <= sends_, and at most kWindow sends are
// posted and not done, so that each has a transfer of its own; the same holds for receives.
// Messages are consumed in the order in which they were posted, so the step list alone fixes the
// order of a reduction (operations_test.cc compares the bits of all ranks and of several runs).
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
#include "collective/algorithm/operation.h"
#include "collective/algorithm/steps.h"
#include "collective/group.h"
#include "collective/reduction.h"
#include "collective/transport.h"

namespace troupe {
class EventDescriptor;
}

namespace troupe::collective_internal {

// The caller's arguments. Spans and pointers are read before Start returns; the data themselves are
// accessed until the operation ends.
struct Request {
  CollectiveOperation operation = CollectiveOperation::kBarrier;
  Purpose purpose = Purpose::kControl;
  const void* input = nullptr;  // equal to output for in-place operations
  void* output = nullptr;
  const Reduction* reduction = nullptr;
  size_t count = 0;  // elements (bytes without a reduction) of a block; ignored if counts are given
  bool has_counts = false;
  std::span<const size_t> counts;          // by rank
  std::span<const size_t> receive_counts;  // all_to_all with counts
  int peer = kNobody;                      // root, or the other end
  bool asynchronous = false;
};

struct ActiveOperation {
  // Prepares the operation for `request`; sends nothing yet. INVALID_ARGUMENT for arguments that do
  // not fit the group.
  Status Describe(Group* of_group, const Request& request);

  // Posts the messages that may be posted and processes those that arrived. Returns true once
  // finished; then `status` holds the result.
  bool Advance(Transport& transport);

  // Cancels all transfers and finishes with status `with`.
  void Fail(Transport& transport, const Status& with);

  // Ranks of the group for which the operation still waits.
  std::vector<int> AwaitedRanks() const;

  // Ranks of the group to or from which the transport failed to transfer a message (UNAVAILABLE).
  std::vector<int> UnreachedRanks() const;

  Group* group = nullptr;
  CollectiveOperation operation = CollectiveOperation::kBarrier;
  Purpose purpose = Purpose::kControl;
  uint64_t sequence = 0;
  size_t bytes = 0;
  MonotonicTime issued;
  uint64_t record = 0;  // number in the flight recorder
  // The caller is blocked in the operation, so all of its time is exposed. False for an
  // asynchronous operation once it is issued.
  bool held_by_caller = true;
  // A thread waits for the operation: always for a synchronous one, for an asynchronous one during
  // Wait.
  bool waited_for = true;
  bool finished = false;
  Status status;
  // The event of the thread that is blocked until this finishes; null if there is none.
  const EventDescriptor* sleeper = nullptr;

 private:
  // The limit of messages in flight in each direction; the scratch buffer holds this many messages.
  static constexpr size_t kWindow = 4;

  // Sets everything but the steps to the state before the first of them.
  void Reset(const Request& request, size_t element_bytes);
  const StepList& Steps(Algorithm algorithm, int peer);
  void SetOffsets(std::span<const size_t> counts, size_t count, size_t element_bytes, int blocks,
                  std::vector<size_t>* offsets) const;
  void ConsumeSegment();
  void OpenStep();
  bool AdvanceStep(Transport& transport);
  void Finish();
  // The tag of a message of the group's rank `sender`, without the seal of the pair.
  uint64_t Tag(int sender) const;
  // Bytes on the wire for `element_bytes` bytes of elements.
  size_t OnWire(size_t element_bytes) const;
  // Posts the next message to send.
  void PostSend(const Step& step, Transport& transport);
  // Reduces or unpacks the received message `index`; one that arrived in place needs nothing.
  void ConsumeMessage(size_t index);
  // The size of message `index` if all messages of the step have `total` bytes.
  size_t BytesOf(size_t index, size_t total) const;
  std::byte* ScratchOf(size_t index);

  Reduction reduction_;
  const StepList* list_ = nullptr;
  const std::byte* send_base_ = nullptr;
  std::byte* receive_base_ = nullptr;
  std::vector<size_t> send_offsets_;
  std::vector<size_t> own_receive_offsets_;
  const std::vector<size_t>* receive_offsets_ = nullptr;
  bool empty_messages_ = false;  // true for a barrier: messages are sent although they are empty
  size_t message_bytes_ = 1;
  // Copied at the end: reduce_scatter copies its own block to the output.
  const void* copy_from_ = nullptr;
  void* copy_to_ = nullptr;
  size_t copy_bytes_ = 0;

  // A large all_reduce runs its whole step list on one segment of the data after another.
  size_t elements_left_ = 0;  // elements after the current segment
  size_t segment_elements_ = 0;

  size_t step_index_ = 0;
  bool step_open_ = false;
  // State of the open step.
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
  // The step receives into the same blocks that it sends, so received data are reduced only once
  // the send is complete.
  bool reduce_last_ = false;
  // The step sends this rank's finished sum; PostSend replaces the sum by its rounded (packed)
  // value.
  bool sends_own_sum_ = false;
  std::array<Transfer, kWindow> send_transfers_;
  std::array<Transfer, kWindow> receive_transfers_;
  std::vector<std::byte> scratch_;
  // Packed messages to send, if the reduction has a wire format of its own.
  std::vector<std::byte> packed_;
};

}  // namespace troupe::collective_internal

#endif  // TROUPE_COLLECTIVE_ACTIVE_OPERATION_H_
