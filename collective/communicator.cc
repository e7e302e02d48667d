#include "collective/communicator.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "collective/engine.h"

namespace troupe {

using collective_internal::Request;

CollectiveHandle::CollectiveHandle(CollectiveHandle&& other) noexcept
    : engine_(other.engine_),
      operation_(std::exchange(other.operation_, nullptr)),
      status_(std::move(other.status_)) {}

CollectiveHandle& CollectiveHandle::operator=(CollectiveHandle&& other) noexcept {
  if (this != &other) {
    Wait().IgnoreError();
    engine_ = other.engine_;
    operation_ = std::exchange(other.operation_, nullptr);
    status_ = std::move(other.status_);
  }
  return *this;
}

// The result may be ignored: if the operation failed, the network's abort fails every later
// operation too.
CollectiveHandle::~CollectiveHandle() { Wait().IgnoreError(); }

bool CollectiveHandle::Test() { return operation_ == nullptr || engine_->Test(operation_); }

Status CollectiveHandle::Wait() {
  if (operation_ == nullptr) return status_;
  bool finished = false;
  status_ = engine_->Wait(operation_, std::nullopt, &finished);
  operation_ = nullptr;
  return status_;
}

Status CollectiveHandle::Wait(MonotonicTime deadline) {
  if (operation_ == nullptr) return status_;
  bool finished = false;
  Status status = engine_->Wait(operation_, deadline, &finished);
  if (finished) {
    operation_ = nullptr;
    status_ = status;
  }
  return status;
}

Communicator::Communicator(collective_internal::Engine* engine,
                           std::unique_ptr<collective_internal::Group> group)
    : engine_(engine), group_(std::move(group)), rank_(group_->rank), size_(group_->size()) {}

Communicator::~Communicator() = default;

const std::string& Communicator::axis() const { return group_->axis; }
Scope Communicator::scope() const { return group_->scope; }
Purpose Communicator::purpose() const { return group_->purpose; }
const std::string& Communicator::name() const { return group_->name; }
std::span<const int> Communicator::global_ranks() const { return group_->global_ranks; }
uint64_t Communicator::running_digest() const { return engine_->Digest(*group_); }

CollectiveHandle Communicator::Start(const Request& request) {
  Request asynchronous = request;
  asynchronous.asynchronous = true;
  collective_internal::ActiveOperation* operation = nullptr;
  Status status = engine_->Start(group_.get(), asynchronous, &operation);
  if (!status.ok()) return CollectiveHandle(std::move(status));
  return CollectiveHandle(engine_, operation);
}

Status Communicator::Run(const Request& request) { return engine_->Run(group_.get(), request); }

namespace {

Request AllReduceRequest(void* data, size_t count, const Reduction& reduction, Purpose purpose) {
  return {.operation = CollectiveOperation::kAllReduce,
          .purpose = purpose,
          .input = data,
          .output = data,
          .reduction = &reduction,
          .count = count};
}

Request ReduceScatterRequest(void* data, void* output, size_t count, const Reduction& reduction,
                             Purpose purpose) {
  return {.operation = CollectiveOperation::kReduceScatter,
          .purpose = purpose,
          .input = data,
          .output = output,
          .reduction = &reduction,
          .count = count};
}

Request ReduceScatterRequest(void* data, void* output, std::span<const size_t> counts,
                             const Reduction& reduction, Purpose purpose) {
  Request request = ReduceScatterRequest(data, output, 0, reduction, purpose);
  request.has_counts = true;
  request.counts = counts;
  return request;
}

Request GatherOrExchange(CollectiveOperation operation, const void* input, void* output,
                         size_t bytes, Purpose purpose) {
  return {
      .operation = operation, .purpose = purpose, .input = input, .output = output, .count = bytes};
}

Request GatherOrExchange(CollectiveOperation operation, const void* input, void* output,
                         std::span<const size_t> counts, std::span<const size_t> receive_counts,
                         Purpose purpose) {
  return {.operation = operation,
          .purpose = purpose,
          .input = input,
          .output = output,
          .has_counts = true,
          .counts = counts,
          .receive_counts = receive_counts};
}

Request PeerRequest(CollectiveOperation operation, const void* input, void* output, size_t bytes,
                    int peer, Purpose purpose) {
  return {.operation = operation,
          .purpose = purpose,
          .input = input,
          .output = output,
          .count = bytes,
          .peer = peer};
}

constexpr auto kAllGather = CollectiveOperation::kAllGather;
constexpr auto kAllToAll = CollectiveOperation::kAllToAll;

}  // namespace

Status Communicator::AllReduce(void* data, size_t count, const Reduction& reduction,
                               std::optional<Purpose> purpose) {
  return Run(AllReduceRequest(data, count, reduction, purpose.value_or(group_->purpose)));
}
CollectiveHandle Communicator::StartAllReduce(void* data, size_t count, const Reduction& reduction,
                                              std::optional<Purpose> purpose) {
  return Start(AllReduceRequest(data, count, reduction, purpose.value_or(group_->purpose)));
}

Status Communicator::ReduceScatter(void* data, void* output, size_t count,
                                   const Reduction& reduction, std::optional<Purpose> purpose) {
  return Run(
      ReduceScatterRequest(data, output, count, reduction, purpose.value_or(group_->purpose)));
}
Status Communicator::ReduceScatter(void* data, void* output, std::span<const size_t> counts,
                                   const Reduction& reduction, std::optional<Purpose> purpose) {
  return Run(
      ReduceScatterRequest(data, output, counts, reduction, purpose.value_or(group_->purpose)));
}
CollectiveHandle Communicator::StartReduceScatter(void* data, void* output, size_t count,
                                                  const Reduction& reduction,
                                                  std::optional<Purpose> purpose) {
  return Start(
      ReduceScatterRequest(data, output, count, reduction, purpose.value_or(group_->purpose)));
}
CollectiveHandle Communicator::StartReduceScatter(void* data, void* output,
                                                  std::span<const size_t> counts,
                                                  const Reduction& reduction,
                                                  std::optional<Purpose> purpose) {
  return Start(
      ReduceScatterRequest(data, output, counts, reduction, purpose.value_or(group_->purpose)));
}

Status Communicator::AllGather(const void* input, void* output, size_t bytes,
                               std::optional<Purpose> purpose) {
  return Run(GatherOrExchange(kAllGather, input, output, bytes, purpose.value_or(group_->purpose)));
}
Status Communicator::AllGather(const void* input, void* output,
                               std::span<const size_t> bytes_by_rank,
                               std::optional<Purpose> purpose) {
  return Run(GatherOrExchange(kAllGather, input, output, bytes_by_rank, {},
                              purpose.value_or(group_->purpose)));
}
CollectiveHandle Communicator::StartAllGather(const void* input, void* output, size_t bytes,
                                              std::optional<Purpose> purpose) {
  return Start(
      GatherOrExchange(kAllGather, input, output, bytes, purpose.value_or(group_->purpose)));
}
CollectiveHandle Communicator::StartAllGather(const void* input, void* output,
                                              std::span<const size_t> bytes_by_rank,
                                              std::optional<Purpose> purpose) {
  return Start(GatherOrExchange(kAllGather, input, output, bytes_by_rank, {},
                                purpose.value_or(group_->purpose)));
}

Status Communicator::AllToAll(const void* input, void* output, size_t bytes,
                              std::optional<Purpose> purpose) {
  return Run(GatherOrExchange(kAllToAll, input, output, bytes, purpose.value_or(group_->purpose)));
}
Status Communicator::AllToAll(const void* input, void* output, std::span<const size_t> send_bytes,
                              std::span<const size_t> receive_bytes,
                              std::optional<Purpose> purpose) {
  return Run(GatherOrExchange(kAllToAll, input, output, send_bytes, receive_bytes,
                              purpose.value_or(group_->purpose)));
}
CollectiveHandle Communicator::StartAllToAll(const void* input, void* output, size_t bytes,
                                             std::optional<Purpose> purpose) {
  return Start(
      GatherOrExchange(kAllToAll, input, output, bytes, purpose.value_or(group_->purpose)));
}
CollectiveHandle Communicator::StartAllToAll(const void* input, void* output,
                                             std::span<const size_t> send_bytes,
                                             std::span<const size_t> receive_bytes,
                                             std::optional<Purpose> purpose) {
  return Start(GatherOrExchange(kAllToAll, input, output, send_bytes, receive_bytes,
                                purpose.value_or(group_->purpose)));
}

Status Communicator::Broadcast(void* data, size_t bytes, int root, std::optional<Purpose> purpose) {
  return Run(PeerRequest(CollectiveOperation::kBroadcast, data, data, bytes, root,
                         purpose.value_or(group_->purpose)));
}

Status Communicator::Send(const void* data, size_t bytes, int to, std::optional<Purpose> purpose) {
  return Run(PeerRequest(CollectiveOperation::kSend, data, nullptr, bytes, to,
                         purpose.value_or(group_->purpose)));
}
CollectiveHandle Communicator::StartSend(const void* data, size_t bytes, int to,
                                         std::optional<Purpose> purpose) {
  return Start(PeerRequest(CollectiveOperation::kSend, data, nullptr, bytes, to,
                           purpose.value_or(group_->purpose)));
}

Status Communicator::Receive(void* data, size_t bytes, int from, std::optional<Purpose> purpose) {
  return Run(PeerRequest(CollectiveOperation::kReceive, nullptr, data, bytes, from,
                         purpose.value_or(group_->purpose)));
}
CollectiveHandle Communicator::StartReceive(void* data, size_t bytes, int from,
                                            std::optional<Purpose> purpose) {
  return Start(PeerRequest(CollectiveOperation::kReceive, nullptr, data, bytes, from,
                           purpose.value_or(group_->purpose)));
}

Status Communicator::Barrier(std::optional<Purpose> purpose) {
  return Run(
      {.operation = CollectiveOperation::kBarrier, .purpose = purpose.value_or(group_->purpose)});
}

Status Communicator::CompareDigest(uint64_t digest) {
  std::vector<uint64_t> digests(static_cast<size_t>(size_));
  TROUPE_RETURN_IF_ERROR(AllGather(&digest, digests.data(), sizeof(digest), Purpose::kStart));
  std::map<uint64_t, int> counts;
  for (const uint64_t value : digests) ++counts[value];
  uint64_t common = digests[0];
  for (const uint64_t value : digests) {
    if (counts[value] > counts[common]) common = value;
  }
  std::vector<std::string> different;
  for (size_t i = 0; i < digests.size(); ++i) {
    if (digests[i] == common) continue;
    different.push_back(
        fmt::format("rank {} (global rank {}): {:016x}", i, group_->global_ranks[i], digests[i]));
  }
  if (different.empty()) return OkStatus();
  return FailedPrecondition(
      "the ordered collectives of group {} on axis {} differ from those of the other ranks "
      "({:016x}) at {}",
      name(), axis(), common, fmt::join(different, ", "));
}

}  // namespace troupe
