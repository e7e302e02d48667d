#include "collective/nccl/nccl_communicator.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>

namespace troupe {
namespace {

nccl::DataType TypeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return nccl::kFloat32;
    case ElementType::kBfloat16:
      return nccl::kBfloat16;
    case ElementType::kFloat64:
      return nccl::kFloat64;
  }
  return nccl::kUint8;
}

size_t Total(std::span<const size_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), size_t{0});
}

bool AreEqual(std::span<const size_t> sizes) {
  return std::ranges::all_of(sizes, [&](size_t size) { return size == sizes[0]; });
}

const std::byte* At(const void* data, size_t offset) {
  return static_cast<const std::byte*>(data) + offset;
}
std::byte* At(void* data, size_t offset) { return static_cast<std::byte*>(data) + offset; }

MonotonicTime Now() { return SystemClock().Now(); }

// Whether a call within a NCCL group was accepted; GroupEnd reports its completion.
bool IsTaken(nccl::Result result) {
  return result == nccl::kSuccess || result == nccl::kInProgress;
}

// The limit of thread blocks for a pipeline link. A blocked NCCL transfer occupies nearly one
// multiprocessor per block, and NCCL would use up to 32 blocks: a few blocked links would leave no
// multiprocessors for the work that other ranks wait for. Identical on both ranks of a link, as
// NCCL requires.
constexpr int kPipelineLinkBlocks = 4;

// The first rank's message to the others: the unique id of the group, or that it has none.
struct Invitation {
  nccl::UniqueId id;
  bool is_there;
};

}  // namespace

NcclCommunicator::NcclCommunicator(NcclEnvironment& environment, Communicator& group,
                                   std::function<void(NcclCommunicator*)> on_end)
    : environment_(environment),
      library_(environment.library),
      device_(environment.device),
      group_(group),
      on_end_(std::move(on_end)),
      ledger_(device_, group) {}

NcclCommunicator::~NcclCommunicator() {
  on_end_(this);
  if (!Close().ok()) Abort();
  // No other thread can use this object any more.
  if (!ended_.valid()) return;
  const Duration limit =
      environment_.leaves_behind.load() ? Duration::zero() : environment_.options.close_limit;
  if (ended_.wait_for(limit) != std::future_status::ready) environment_.leaves_behind.store(true);
}

Status NcclCommunicator::Connect() {
  Status status = TryConnect();
  if (status.ok()) return status;
  status = Annotate(status, fmt::format("group {} of NCCL", group_.name()));
  environment_.abort(status);
  return status;
}

Status NcclCommunicator::TryConnect() {
  TROUPE_RETURN_IF_ERROR(device_.Use());
  Invitation invitation{};
  Status made = OkStatus();
  if (rank() == 0) {
    made = library_.ToStatus(library_.get_unique_id(&invitation.id), nullptr);
    invitation.is_there = made.ok();
  }
  TROUPE_RETURN_IF_ERROR(group_.Broadcast(&invitation, sizeof(invitation), 0, Purpose::kStart));
  TROUPE_RETURN_IF_ERROR(made);
  if (!invitation.is_there)
    return Unavailable("rank {} has no unique id", group_.global_ranks()[0]);
  nccl::Config config;
  config.blocking = 0;
  config.comm_name = group_.name().c_str();
  if (group_.purpose() == Purpose::kPipe) config.max_ctas = kPipelineLinkBlocks;
  return Complete(
      [&](nccl::Comm) {
        return library_.comm_init_rank_config(&comm_, size(), invitation.id, rank(), &config);
      },
      environment_.options.connect_limit);
}

Status NcclCommunicator::Complete(const std::function<nccl::Result(nccl::Comm)>& call,
                                  Duration limit) {
  const MonotonicTime deadline = Now() + limit;
  Duration pause = std::chrono::microseconds(1);
  for (bool called = false;; called = true) {
    {
      const std::lock_guard lock(mutex_);
      if (aborted_) {
        const Status cause = environment_.status();
        return cause.ok() ? Unavailable("{} is aborted", group_.name())
                          : Annotate(cause, "aborted");
      }
      nccl::Result result = nccl::kSuccess;
      if (!called) {
        result = call(comm_);
      } else if (const nccl::Result asked = library_.comm_get_async_error(comm_, &result);
                 asked != nccl::kSuccess) {
        result = asked;
      }
      if (result != nccl::kInProgress) return library_.ToStatus(result, comm_);
    }
    if (Now() >= deadline) {
      return DeadlineExceeded("NCCL has not completed it within {:.1f} s", ToSeconds(limit));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min<Duration>(2 * pause, std::chrono::milliseconds(1));
  }
}

nccl::Result NcclCommunicator::Grouped(const std::function<nccl::Result()>& calls) const {
  const nccl::Result begun = library_.group_start();
  if (begun != nccl::kSuccess) return begun;
  const nccl::Result called = calls();
  const nccl::Result ended = library_.group_end();
  return IsTaken(called) ? ended : called;
}

Status NcclCommunicator::Issue(CollectiveOperation operation, size_t bytes, Purpose purpose,
                               DeviceStream stream, const Call& call) {
  StatusOr<int> mark = ledger_.Issue(operation, bytes, purpose);
  Status status = mark.ok() ? TryIssue(*mark, stream, call) : mark.status();
  if (status.ok()) return status;
  status = Annotate(status, ledger_.Describe(operation, purpose));
  environment_.abort(status);
  return status;
}

Status NcclCommunicator::TryIssue(int mark, DeviceStream stream, const Call& call) {
  nccl::CudaStream const native = device_.NativeStream(stream);
  TROUPE_RETURN_IF_ERROR(device_.Begin(mark, stream));
  TROUPE_RETURN_IF_ERROR(Complete(
      [&](nccl::Comm comm) {
        return comm == nullptr ? nccl::Result{nccl::kInvalidUsage} : call(comm, native);
      },
      environment_.options.hang_limit));
  return device_.End(mark, stream);
}

Status NcclCommunicator::AllReduce(const void* input, void* output, size_t count, ElementType type,
                                   DeviceReduction reduction, Purpose purpose,
                                   DeviceStream stream) {
  if (count == 0) return OkStatus();
  const nccl::RedOp op = reduction == DeviceReduction::kMax ? nccl::kMax : nccl::kSum;
  return Issue(CollectiveOperation::kAllReduce, count * SizeOf(type), purpose, stream,
               [&](nccl::Comm comm, nccl::CudaStream native) {
                 return library_.all_reduce(input, output, count, TypeOf(type), op, comm, native);
               });
}

Status NcclCommunicator::ReduceScatter(const void* input, void* output,
                                       std::span<const size_t> counts, ElementType type,
                                       Purpose purpose, DeviceStream stream) {
  const size_t total = Total(counts);
  if (total == 0) return OkStatus();
  const auto equal = [&](nccl::Comm comm, nccl::CudaStream native) {
    return library_.reduce_scatter(input, output, counts[0], TypeOf(type), nccl::kSum, comm,
                                   native);
  };
  const auto unequal = [&](nccl::Comm comm, nccl::CudaStream native) {
    return Grouped([&] {
      nccl::Result result = nccl::kSuccess;
      size_t offset = 0;
      for (int root = 0; root < size() && IsTaken(result); ++root) {
        const size_t count = counts[static_cast<size_t>(root)];
        if (count > 0) {
          result =
              library_.reduce(At(input, offset * SizeOf(type)), root == rank() ? output : nullptr,
                              count, TypeOf(type), nccl::kSum, root, comm, native);
        }
        offset += count;
      }
      return result;
    });
  };
  return Issue(CollectiveOperation::kReduceScatter, total * SizeOf(type), purpose, stream,
               AreEqual(counts) ? Call(equal) : Call(unequal));
}

Status NcclCommunicator::AllGather(const void* input, void* output, std::span<const size_t> bytes,
                                   Purpose purpose, DeviceStream stream) {
  const size_t total = Total(bytes);
  if (total == 0) return OkStatus();
  const auto equal = [&](nccl::Comm comm, nccl::CudaStream native) {
    return library_.all_gather(input, output, bytes[0], nccl::kUint8, comm, native);
  };
  const auto unequal = [&](nccl::Comm comm, nccl::CudaStream native) {
    return Grouped([&] {
      nccl::Result result = nccl::kSuccess;
      size_t offset = 0;
      for (int root = 0; root < size() && IsTaken(result); ++root) {
        const size_t block = bytes[static_cast<size_t>(root)];
        void* const to = At(output, offset);
        if (block > 0) {
          result = library_.broadcast(root == rank() ? input : to, to, block, nccl::kUint8, root,
                                      comm, native);
        }
        offset += block;
      }
      return result;
    });
  };
  return Issue(CollectiveOperation::kAllGather, total, purpose, stream,
               AreEqual(bytes) ? Call(equal) : Call(unequal));
}

Status NcclCommunicator::AllToAll(const void* input, void* output,
                                  std::span<const size_t> send_bytes,
                                  std::span<const size_t> receive_bytes, Purpose purpose,
                                  DeviceStream stream) {
  const size_t sent = Total(send_bytes), received = Total(receive_bytes);
  if (sent == 0 && received == 0) return OkStatus();
  return Issue(CollectiveOperation::kAllToAll, std::max(sent, received), purpose, stream,
               [&](nccl::Comm comm, nccl::CudaStream native) {
                 return Grouped([&] {
                   nccl::Result result = nccl::kSuccess;
                   size_t from = 0, to = 0;
                   for (int peer = 0; peer < size() && IsTaken(result); ++peer) {
                     const auto place = static_cast<size_t>(peer);
                     if (send_bytes[place] > 0) {
                       result = library_.send(At(input, from), send_bytes[place], nccl::kUint8,
                                              peer, comm, native);
                     }
                     if (receive_bytes[place] > 0 && IsTaken(result)) {
                       result = library_.receive(At(output, to), receive_bytes[place], nccl::kUint8,
                                                 peer, comm, native);
                     }
                     from += send_bytes[place];
                     to += receive_bytes[place];
                   }
                   return result;
                 });
               });
}

Status NcclCommunicator::Send(const void* data, size_t bytes, int to, Purpose purpose,
                              DeviceStream stream) {
  if (bytes == 0) return OkStatus();
  return Issue(CollectiveOperation::kSend, bytes, purpose, stream,
               [&](nccl::Comm comm, nccl::CudaStream native) {
                 return library_.send(data, bytes, nccl::kUint8, to, comm, native);
               });
}

Status NcclCommunicator::Receive(void* data, size_t bytes, int from, Purpose purpose,
                                 DeviceStream stream) {
  if (bytes == 0) return OkStatus();
  return Issue(CollectiveOperation::kReceive, bytes, purpose, stream,
               [&](nccl::Comm comm, nccl::CudaStream native) {
                 return library_.receive(data, bytes, nccl::kUint8, from, comm, native);
               });
}

Status NcclCommunicator::Check() {
  {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return OkStatus();
    nccl::Result error = nccl::kSuccess;
    TROUPE_RETURN_IF_ERROR(library_.ToStatus(library_.comm_get_async_error(comm_, &error), comm_));
    if (error != nccl::kInProgress) {
      TROUPE_RETURN_IF_ERROR(Annotate(library_.ToStatus(error, comm_),
                                      fmt::format("group {} of NCCL", group_.name())));
    }
  }
  return ledger_.CheckHang(Now(), environment_.options.hang_limit);
}

void NcclCommunicator::Abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  if (comm_ == nullptr) return;
  std::packaged_task<void()> end(
      [&device = device_, abort = library_.comm_abort, comm = std::exchange(comm_, nullptr)] {
        // Without this, NCCL would create a context of the thread's default device, device 0, in
        // this process.
        device.Use().IgnoreError();
        // The result is ignored: nothing may be called on the communicator any more.
        abort(comm);
      });
  ended_ = end.get_future();
  std::thread(std::move(end)).detach();
}

Status NcclCommunicator::Close() {
  {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return OkStatus();
  }
  // If one rank aborts, all ranks abort.
  TROUPE_RETURN_IF_ERROR(environment_.status());
  if (environment_.leaves_behind.load()) return Unavailable("NCCL did not complete another group");
  TROUPE_RETURN_IF_ERROR(Complete([this](nccl::Comm comm) { return library_.comm_finalize(comm); },
                                  environment_.options.close_limit));
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return OkStatus();
  return library_.ToStatus(library_.comm_destroy(std::exchange(comm_, nullptr)), nullptr);
}

}  // namespace troupe
