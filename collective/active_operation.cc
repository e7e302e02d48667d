#include "collective/active_operation.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace troupe::collective_internal {
namespace {

void Copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

bool Intersect(const BlockRange& a, const BlockRange& b) {
  return a.first < b.last && b.first < a.last;
}

// Whether the arguments fit the group.
Status CheckRequest(const Group& group, const Request& request) {
  const CollectiveOperation operation = request.operation;
  const int ranks = group.size();
  const auto what = [&] { return fmt::format("{} of group {}", Name(operation), group.name); };
  if (request.has_counts && request.counts.size() != static_cast<size_t>(ranks)) {
    return InvalidArgument("{}: {} counts for {} ranks", what(), request.counts.size(), ranks);
  }
  const bool exchange = operation == CollectiveOperation::kAllToAll;
  if (exchange && request.has_counts &&
      request.receive_counts.size() != static_cast<size_t>(ranks)) {
    return InvalidArgument("{}: {} receive counts for {} ranks", what(),
                           request.receive_counts.size(), ranks);
  }
  if (exchange && request.has_counts) {
    const auto own = static_cast<size_t>(group.rank);
    if (request.counts[own] != request.receive_counts[own]) {
      return InvalidArgument("{}: this rank sends {} bytes to itself but expects {} from itself",
                             what(), request.counts[own], request.receive_counts[own]);
    }
  }
  const bool point_to_point =
      operation == CollectiveOperation::kSend || operation == CollectiveOperation::kReceive;
  if (point_to_point || operation == CollectiveOperation::kBroadcast) {
    if (request.peer < 0 || request.peer >= ranks ||
        (point_to_point && request.peer == group.rank)) {
      return InvalidArgument("{}: rank {} is not {}of its {} ranks", what(), request.peer,
                             point_to_point ? "another one " : "one ", ranks);
    }
  }
  return OkStatus();
}

}  // namespace

Status ActiveOperation::Describe(Group* of_group, const Request& request) {
  group = of_group;
  operation = request.operation;
  purpose = request.purpose;
  TROUPE_RETURN_IF_ERROR(CheckRequest(*group, request));
  const int ranks = group->size();
  const size_t own = static_cast<size_t>(group->rank);
  const size_t element_bytes = request.reduction != nullptr ? request.reduction->element_bytes : 1;
  Reset(request, element_bytes);
  switch (operation) {
    case CollectiveOperation::kAllReduce: {
      bytes = OnWire(request.count * element_bytes);
      list_ = &Steps(ChooseAlgorithm(operation, bytes, ranks, reduction_.wire_bytes > 0), kNobody);
      elements_left_ = request.count;
      segment_elements_ = SegmentElements(element_bytes, list_->blocks);
      ConsumeSegment();
      break;
    }
    case CollectiveOperation::kReduceScatter: {
      SetOffsets(request.counts, request.count, element_bytes, ranks, &send_offsets_);
      bytes = OnWire(send_offsets_.back());
      list_ = &Steps(ChooseAlgorithm(operation, bytes, ranks, reduction_.wire_bytes > 0), kNobody);
      // The sums accumulate in place, in the input data.
      receive_base_ = const_cast<std::byte*>(send_base_);
      copy_from_ = receive_base_ + send_offsets_[own];
      copy_to_ = request.output;
      copy_bytes_ = send_offsets_[own + 1] - send_offsets_[own];
      break;
    }
    case CollectiveOperation::kAllGather: {
      SetOffsets(request.counts, request.count, 1, ranks, &send_offsets_);
      bytes = send_offsets_.back();
      list_ = &Steps(ChooseAlgorithm(operation, bytes, ranks), kNobody);
      send_base_ = receive_base_;
      Copy(receive_base_ + send_offsets_[own], request.input,
           send_offsets_[own + 1] - send_offsets_[own]);
      break;
    }
    case CollectiveOperation::kAllToAll: {
      SetOffsets(request.counts, request.count, 1, ranks, &send_offsets_);
      SetOffsets(request.receive_counts, request.count, 1, ranks, &own_receive_offsets_);
      receive_offsets_ = &own_receive_offsets_;
      bytes = std::max(send_offsets_.back(), own_receive_offsets_.back());
      list_ = &Steps(ChooseAlgorithm(operation, bytes, ranks), kNobody);
      Copy(receive_base_ + own_receive_offsets_[own], send_base_ + send_offsets_[own],
           send_offsets_[own + 1] - send_offsets_[own]);
      break;
    }
    case CollectiveOperation::kBroadcast:
    case CollectiveOperation::kSend:
    case CollectiveOperation::kReceive:
    case CollectiveOperation::kBarrier: {
      bytes = request.count;
      list_ = &Steps(ChooseAlgorithm(operation, bytes, ranks), request.peer);
      send_offsets_.assign({0, bytes});
      break;
    }
  }
  return OkStatus();
}

void ActiveOperation::Reset(const Request& request, size_t element_bytes) {
  reduction_ = request.reduction != nullptr ? *request.reduction : Reduction{};
  message_bytes_ = MessageBytes(element_bytes);
  send_base_ = static_cast<const std::byte*>(request.input);
  receive_base_ = static_cast<std::byte*>(request.output);
  receive_offsets_ = &send_offsets_;
  copy_bytes_ = 0;
  elements_left_ = 0;
  empty_messages_ = operation == CollectiveOperation::kBarrier;
  step_index_ = 0;
  step_open_ = false;
  finished = false;
  status = OkStatus();
  sleeper = nullptr;
}

const StepList& ActiveOperation::Steps(Algorithm algorithm, int peer) {
  for (const Group::CachedSteps& cached : group->cached_steps) {
    if (cached.algorithm == algorithm && cached.operation == operation && cached.peer == peer)
      return *cached.list;
  }
  group->cached_steps.push_back({algorithm, operation, peer,
                                 std::make_unique<const StepList>(MakeSteps(
                                     algorithm, operation, group->rank, group->size(), peer))});
  return *group->cached_steps.back().list;
}

void ActiveOperation::SetOffsets(std::span<const size_t> counts, size_t count, size_t element_bytes,
                                 int blocks, std::vector<size_t>* offsets) const {
  offsets->resize(static_cast<size_t>(blocks) + 1);
  size_t offset = 0;
  for (size_t i = 0; i < static_cast<size_t>(blocks); ++i) {
    (*offsets)[i] = offset;
    offset += (counts.empty() ? count : counts[i]) * element_bytes;
  }
  offsets->back() = offset;
}

uint64_t ActiveOperation::Tag(int sender) const {
  // Group, sender, and the low bits of the sequence number, which cannot wrap among the operations
  // in flight. Steps need no number: within an operation both ranks exchange their messages in the
  // same order.
  return (uint64_t{group->tag_prefix} << 32) | (static_cast<uint64_t>(sender) << 16) |
         (sequence & 0xFFFF);
}

size_t ActiveOperation::BytesOf(size_t index, size_t total) const {
  return std::min(message_bytes_, total - index * message_bytes_);
}

size_t ActiveOperation::OnWire(size_t element_bytes) const {
  if (reduction_.wire_bytes == 0) return element_bytes;
  return element_bytes / reduction_.element_bytes * reduction_.wire_bytes;
}

std::byte* ActiveOperation::ScratchOf(size_t index) {
  return scratch_.data() + (reduce_last_ ? index : index % kWindow) * OnWire(message_bytes_);
}

void ActiveOperation::ConsumeSegment() {
  const size_t elements = std::min(elements_left_, segment_elements_);
  BalancedOffsets(elements, reduction_.element_bytes, list_->blocks, &send_offsets_);
  elements_left_ -= elements;
}

void ActiveOperation::OpenStep() {
  const Step& step = list_->steps[step_index_];
  const auto messages = [&](size_t total) {
    if (empty_messages_) return size_t{1};
    return (total + message_bytes_ - 1) / message_bytes_;
  };
  sends_ = receives_ = 0;
  sends_posted_ = sends_done_ = receives_posted_ = receives_done_ = 0;
  reduce_ = step.reduce;
  reduce_last_ = step.reduce && step.send_to != kNobody && Intersect(step.send, step.receive);
  if (step.send_to != kNobody) {
    const size_t begin = send_offsets_[static_cast<size_t>(step.send.first)];
    send_data_ = send_base_ + begin;
    send_total_ = send_offsets_[static_cast<size_t>(step.send.last)] - begin;
    sends_ = messages(send_total_);
  }
  if (step.receive_from != kNobody) {
    const size_t begin = (*receive_offsets_)[static_cast<size_t>(step.receive.first)];
    receive_data_ = receive_base_ + begin;
    receive_total_ = (*receive_offsets_)[static_cast<size_t>(step.receive.last)] - begin;
    receives_ = messages(receive_total_);
  }
  const bool packed = reduction_.wire_bytes > 0;
  if (reduce_ || packed) {
    const size_t needed =
        reduce_last_ ? receive_total_ : std::min(receive_total_, kWindow * message_bytes_);
    if (scratch_.size() < OnWire(needed)) scratch_.resize(OnWire(needed));
  }
  if (packed) {
    const size_t needed = OnWire(std::min(send_total_, kWindow * message_bytes_));
    if (packed_.size() < needed) packed_.resize(needed);
  }
  sends_own_sum_ =
      packed && !step.reduce && step_index_ > 0 && list_->steps[step_index_ - 1].reduce;
  step_open_ = true;
}

void ActiveOperation::PostSend(const Step& step, Transport& transport) {
  const std::byte* data = send_data_ + sends_posted_ * message_bytes_;
  const size_t size = BytesOf(sends_posted_, send_total_);
  if (reduction_.wire_bytes > 0) {
    const size_t elements = size / reduction_.element_bytes;
    std::byte* const message = packed_.data() + sends_posted_ % kWindow * OnWire(message_bytes_);
    reduction_.pack(data, message, elements);
    // The sender also uses the rounded value, so that all ranks end with the same bits.
    if (sends_own_sum_) {
      reduction_.unpack(message, receive_base_ + (data - send_base_), elements);
    }
    data = message;
  }
  const int peer = group->global_ranks[static_cast<size_t>(step.send_to)];
  transport.Send(peer, Tag(group->rank) ^ group->seals->outgoing[static_cast<size_t>(peer)], data,
                 OnWire(size), &send_transfers_[sends_posted_ % kWindow]);
  ++sends_posted_;
}

void ActiveOperation::ConsumeMessage(size_t index) {
  const size_t size = BytesOf(index, receive_total_);
  std::byte* const to = receive_data_ + index * message_bytes_;
  if (reduce_) {
    if (reduce_last_) return;
    reduction_.combine(reduction_.state, to, ScratchOf(index), size / reduction_.element_bytes);
  } else if (reduction_.wire_bytes > 0) {
    reduction_.unpack(ScratchOf(index), to, size / reduction_.element_bytes);
  }
}

bool ActiveOperation::AdvanceStep(Transport& transport) {
  const Step& step = list_->steps[step_index_];
  for (;;) {
    bool moved = false;
    while (sends_done_ < sends_posted_ && send_transfers_[sends_done_ % kWindow].done) {
      if (!send_transfers_[sends_done_ % kWindow].status.ok()) {
        status = send_transfers_[sends_done_ % kWindow].status;
        return false;
      }
      ++sends_done_;
      moved = true;
    }
    while (sends_posted_ < sends_ && sends_posted_ - sends_done_ < kWindow) {
      PostSend(step, transport);
      moved = true;
    }
    while (receives_posted_ < receives_ && receives_posted_ - receives_done_ < kWindow) {
      std::byte* to = reduce_ || reduction_.wire_bytes > 0
                          ? ScratchOf(receives_posted_)
                          : receive_data_ + receives_posted_ * message_bytes_;
      const int peer = group->global_ranks[static_cast<size_t>(step.receive_from)];
      transport.Receive(peer,
                        Tag(step.receive_from) ^ group->seals->incoming[static_cast<size_t>(peer)],
                        to, OnWire(BytesOf(receives_posted_, receive_total_)),
                        &receive_transfers_[receives_posted_ % kWindow]);
      ++receives_posted_;
      moved = true;
    }
    while (receives_done_ < receives_posted_ && receive_transfers_[receives_done_ % kWindow].done) {
      if (!receive_transfers_[receives_done_ % kWindow].status.ok()) {
        status = receive_transfers_[receives_done_ % kWindow].status;
        return false;
      }
      ConsumeMessage(receives_done_);
      ++receives_done_;
      moved = true;
    }
    if (sends_done_ == sends_ && receives_done_ == receives_) break;
    if (!moved) return false;
  }
  if (reduce_last_ && receive_total_ > 0) {
    reduction_.combine(reduction_.state, receive_data_, scratch_.data(),
                       receive_total_ / reduction_.element_bytes);
  }
  return true;
}

bool ActiveOperation::Advance(Transport& transport) {
  while (!finished) {
    if (step_index_ == list_->steps.size()) {
      if (elements_left_ == 0) {
        Finish();
        break;
      }
      receive_base_ += send_offsets_.back();
      send_base_ = receive_base_;
      ConsumeSegment();
      step_index_ = 0;
      continue;
    }
    if (!step_open_) OpenStep();
    if (!AdvanceStep(transport)) return false;
    step_open_ = false;
    ++step_index_;
  }
  return true;
}

void ActiveOperation::Finish() {
  Copy(copy_to_, copy_from_, copy_bytes_);
  finished = true;
}

void ActiveOperation::Fail(Transport& transport, const Status& with) {
  if (step_open_) {
    for (size_t i = sends_done_; i < sends_posted_; ++i)
      transport.Cancel(&send_transfers_[i % kWindow]);
    for (size_t i = receives_done_; i < receives_posted_; ++i)
      transport.Cancel(&receive_transfers_[i % kWindow]);
  }
  status = with;
  finished = true;
}

std::vector<int> ActiveOperation::AwaitedRanks() const {
  std::vector<int> ranks;
  if (finished || !step_open_) return ranks;
  const Step& step = list_->steps[step_index_];
  if (receives_done_ < receives_) ranks.push_back(step.receive_from);
  if (sends_done_ < sends_ && step.send_to != kNobody &&
      std::find(ranks.begin(), ranks.end(), step.send_to) == ranks.end()) {
    ranks.push_back(step.send_to);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::vector<int> ActiveOperation::UnreachedRanks() const {
  std::vector<int> ranks;
  if (finished || !step_open_) return ranks;
  const Step& step = list_->steps[step_index_];
  const auto failed = [](const Transfer& transfer) {
    return transfer.done && transfer.status.code() == StatusCode::kUnavailable;
  };
  for (size_t i = sends_done_; i < sends_posted_; ++i) {
    if (failed(send_transfers_[i % kWindow])) ranks.push_back(step.send_to);
  }
  for (size_t i = receives_done_; i < receives_posted_; ++i) {
    if (failed(receive_transfers_[i % kWindow])) ranks.push_back(step.receive_from);
  }
  return ranks;
}

}  // namespace troupe::collective_internal
