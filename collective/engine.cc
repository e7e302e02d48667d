#include "collective/engine.h"

#include <fmt/ranges.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace troupe::collective_internal {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// The sleep of a wait without spinning while the transport has work for which it signals no event.
// Yielding in a loop instead stalled ranks that share a core for up to 1.9 s, measured on Linux
// 6.18.
constexpr Duration kBusyPause = microseconds(50);
// The longest sleep between two checks of the abort flag and limits; events end it sooner.
constexpr Duration kSleepLimit = milliseconds(20);
// While another thread waits, that thread makes the progress; the progress thread checks at this
// interval whether it still does.
constexpr Duration kStandbyLimit = milliseconds(1);
constexpr Duration kIdleLimit = std::chrono::seconds(1);
// Far below the number of sequence numbers that a tag distinguishes.
constexpr int kPendingMax = 512;

MonotonicTime Now() { return std::chrono::steady_clock::now(); }

// Returns when one of the descriptors (those >= 0) is readable or after `limit`.
void Sleep(std::array<int, 3> descriptors, Duration limit) {
  std::array<pollfd, 3> polled;
  nfds_t count = 0;
  for (const int descriptor : descriptors) {
    if (descriptor >= 0) polled[count++] = {.fd = descriptor, .events = POLLIN, .revents = 0};
  }
  const auto nanoseconds = std::max<int64_t>(0, limit.count());
  const timespec timeout{.tv_sec = nanoseconds / 1'000'000'000,
                         .tv_nsec = nanoseconds % 1'000'000'000};
  ::ppoll(polled.data(), count, &timeout, nullptr);
}

const EventDescriptor& ThreadEvent() {
  thread_local const EventDescriptor event;
  return event;
}

size_t DurationBucket(uint64_t nanoseconds) {
  const double seconds = static_cast<double>(nanoseconds) * 1e-9;
  size_t bucket = 0;
  while (bucket < kCollectiveDurationBounds.size() && seconds > kCollectiveDurationBounds[bucket])
    ++bucket;
  return bucket;
}

}  // namespace

Engine::Engine(const NetworkOptions& options, std::unique_ptr<Transport> transport)
    : options_(options),
      made_(Now()),
      spin_limit_(options.ranks_on_host <= options.cores_on_host ? kSpinLimit : Duration::zero()),
      address_(transport->address()),
      transport_(std::move(transport)),
      recorder_(static_cast<size_t>(options.recorded_operations)) {}

Engine::~Engine() { TROUPE_CHECK(closed_, "Engine::Close was not called before the destructor"); }

Engine::Lock Engine::LockMutex() const {
  wanting_mutex_.fetch_add(1, std::memory_order_relaxed);
  Lock lock(mutex_);
  wanting_mutex_.fetch_sub(1, std::memory_order_relaxed);
  return lock;
}

Status Engine::abort_status() const {
  std::lock_guard lock(abort_mutex_);
  return abort_status_;
}

void Engine::Abort(Status status) {
  TROUPE_CHECK(!status.ok(), "an abort needs a cause");
  {
    std::lock_guard lock(abort_mutex_);
    if (aborted_.load(std::memory_order_relaxed)) return;
    abort_status_ = std::move(status);
    aborted_.store(true, std::memory_order_release);
  }
  abort_event_.Signal();
}

Status Engine::Start(Group* group, const Request& request, ActiveOperation** operation) {
  Lock lock = LockMutex();
  if (aborted()) {
    FailAll();
    return abort_status();
  }
  if (!open_ && group->size() > 1) {
    return FailedPrecondition("group {}: the network is not connected yet", group->name);
  }
  // A rank that is ahead of its peers waits for them here; CheckHang bounds the wait.
  if (group->pending >= kPendingMax) {
    const MonotonicTime begin = Now();
    WaitUntil(
        lock, [group] { return group->pending < kPendingMax; }, std::nullopt, nullptr);
    exposed_by_purpose_[static_cast<size_t>(request.purpose)] += Now() - begin;
    if (aborted()) return abort_status();
  }
  if (free_.empty()) {
    operations_.push_back(std::make_unique<ActiveOperation>());
    free_.push_back(operations_.back().get());
  }
  ActiveOperation* started = free_.back();
  TROUPE_RETURN_IF_ERROR(started->Describe(group, request));
  free_.pop_back();
  *operation = started;
  started->sequence = group->next_sequence++;
  started->issued = Now();
  started->held_by_caller = true;
  started->waited_for = true;
  ++group->pending;
  const bool extent_at_run_time =
      request.operation == CollectiveOperation::kAllToAll && request.has_counts;
  group->digest.Add(request.operation, extent_at_run_time ? 0 : started->bytes,
                    request.reduction != nullptr ? request.reduction->name : std::string_view(),
                    request.purpose);
  started->record = recorder_.Issue({.group = group,
                                     .sequence = started->sequence,
                                     .bytes = started->bytes,
                                     .issued = started->issued,
                                     .operation = request.operation,
                                     .purpose = request.purpose});
  active_.push_back(started);
  if (started->Advance(*transport_)) {
    active_.pop_back();
    Complete(started);
  } else if (!started->status.ok()) {
    Abort(Annotate(started->status,
                   fmt::format("{} of group {}, sequence {}", Name(started->operation), group->name,
                               started->sequence)));
    FailAll();
  } else if (request.asynchronous) {
    AddExposed(*started, Now() - started->issued);
    started->held_by_caller = false;
    started->waited_for = false;
    StartProgressThread();
  }
  return OkStatus();
}

void Engine::Open() {
  const Lock lock = LockMutex();
  open_ = true;
}

Status Engine::Run(Group* group, const Request& request) {
  ActiveOperation* operation = nullptr;
  TROUPE_RETURN_IF_ERROR(Start(group, request, &operation));
  bool finished = false;
  return Wait(operation, std::nullopt, &finished);
}

void Engine::Complete(ActiveOperation* operation, std::vector<int> awaited) {
  const MonotonicTime now = Now();
  Group& group = *operation->group;
  --group.pending;
  Totals& totals = group.totals[static_cast<size_t>(operation->operation)]
                               [static_cast<size_t>(operation->purpose)];
  const auto nanoseconds = static_cast<uint64_t>((now - operation->issued).count());
  ++totals.count;
  totals.bytes += operation->bytes;
  totals.nanoseconds += nanoseconds;
  ++totals.duration_counts[DurationBucket(nanoseconds)];
  total_by_purpose_[static_cast<size_t>(operation->purpose)] += now - operation->issued;
  if (operation->held_by_caller) AddExposed(*operation, now - operation->issued);
  recorder_.Finish(operation->record, now,
                   operation->status.ok() ? RecordState::kFinished : RecordState::kFailed,
                   std::move(awaited));
  if (operation->sleeper != nullptr) operation->sleeper->Signal();
}

void Engine::AddExposed(const ActiveOperation& operation, Duration time) {
  exposed_by_purpose_[static_cast<size_t>(operation.purpose)] += time;
  recorder_.AddExposed(operation.record, time);
}

void Engine::AdvanceAll() {
  transport_->Progress();
  size_t kept = 0;
  for (size_t i = 0; i < active_.size(); ++i) {
    ActiveOperation* operation = active_[i];
    if (operation->Advance(*transport_)) {
      Complete(operation);
      continue;
    }
    if (!operation->status.ok()) {
      Abort(Annotate(operation->status,
                     fmt::format("{} of group {}, sequence {}", Name(operation->operation),
                                 operation->group->name, operation->sequence)));
    }
    active_[kept++] = operation;
  }
  active_.resize(kept);
}

void Engine::FailAll() {
  const Status status = abort_status();
  const MonotonicTime now = Now();
  for (ActiveOperation* operation : active_) {
    std::optional<CollectiveFlight>& flight = operation->group->aborted_flight;
    if (operation->waited_for && !flight) flight = FlightIn(*operation, now);
    std::vector<int> awaited = AwaitedGlobalRanks(*operation);
    for (const int rank : operation->UnreachedRanks())
      unreached_.insert(operation->group->global_ranks[static_cast<size_t>(rank)]);
    operation->Fail(*transport_, status);
    Complete(operation, std::move(awaited));
  }
  active_.clear();
}

std::vector<int> Engine::AwaitedGlobalRanks(const ActiveOperation& operation) {
  std::vector<int> ranks = operation.AwaitedRanks();
  for (int& rank : ranks) rank = operation.group->global_ranks[static_cast<size_t>(rank)];
  return ranks;
}

std::string Engine::DescribeHang(const ActiveOperation& operation, MonotonicTime now) const {
  const Group& group = *operation.group;
  return fmt::format(
      "{} on axis {} (purpose {}) of group {}, sequence {}, {} bytes, has not finished after "
      "{:.3f} s: rank {} of "
      "the group (global rank {}) did not arrive",
      Name(operation.operation), group.axis, Name(operation.purpose), group.name,
      operation.sequence, operation.bytes, ToSeconds(now - operation.issued),
      fmt::join(operation.AwaitedRanks(), ", "), fmt::join(AwaitedGlobalRanks(operation), ", "));
}

void Engine::CheckHang(MonotonicTime now) {
  if (active_.empty() || now - active_.front()->issued < options_.hang_limit) return;
  Abort(DeadlineExceeded("{}", DescribeHang(*active_.front(), now)));
}

void Engine::WaitUntil(Lock& lock, const std::function<bool()>& done,
                       std::optional<MonotonicTime> deadline, const EventDescriptor** sleeper) {
  ++waiting_;
  MonotonicTime start{};
  bool timed = false;
  const Duration spin_limit = spin_limit_.load(std::memory_order_relaxed);
  for (unsigned turn = 1; !done() && !aborted(); ++turn) {
    AdvanceAll();
    if (done() || aborted()) break;
    if (wanting_mutex_.load(std::memory_order_relaxed) > 0) {
      lock.unlock();
      ::sched_yield();
      lock.lock();
    }
    // Reading the clock costs as much as a turn, so read it only every 16 turns.
    if (timed && turn % 16 != 0 && spin_limit > Duration::zero()) continue;
    const MonotonicTime now = Now();
    if (!timed) {
      start = now;
      timed = true;
    }
    CheckHang(now);
    if (deadline.has_value() && now >= *deadline) break;
    if (now - start < spin_limit) continue;
    if (aborted()) continue;
    const bool armed = transport_->Arm();
    // The transport has work for which no event will be signalled; another rank on this core may be
    // the one to finish it.
    if (!armed && spin_limit > Duration::zero()) continue;
    Duration limit = std::min(armed ? kSleepLimit : kBusyPause, options_.hang_limit);
    if (deadline.has_value()) limit = std::min(limit, *deadline - now);
    const EventDescriptor& event = ThreadEvent();
    if (sleeper != nullptr) *sleeper = &event;
    const int descriptor = armed ? transport_->event_descriptor() : -1;
    lock.unlock();
    Sleep({descriptor, event.get(), abort_event_.get()}, limit);
    lock.lock();
    if (sleeper != nullptr) *sleeper = nullptr;
    event.Drain();
  }
  if (aborted()) FailAll();
  --waiting_;
}

bool Engine::Test(ActiveOperation* operation) {
  const Lock lock = LockMutex();
  if (operation->finished) return true;
  if (!aborted()) AdvanceAll();
  if (aborted()) FailAll();
  CheckHang(Now());
  return operation->finished;
}

Status Engine::Wait(ActiveOperation* operation, std::optional<MonotonicTime> deadline,
                    bool* finished) {
  Lock lock = LockMutex();
  if (!operation->finished) {
    const bool asynchronous = !operation->held_by_caller;
    operation->waited_for = true;
    const MonotonicTime begin = asynchronous ? Now() : MonotonicTime();
    WaitUntil(
        lock, [operation] { return operation->finished; }, deadline, &operation->sleeper);
    if (asynchronous) AddExposed(*operation, Now() - begin);
  }
  *finished = operation->finished;
  if (!operation->finished) {
    operation->waited_for = false;
    return DeadlineExceeded("{} of group {}, sequence {}, is still pending",
                            Name(operation->operation), operation->group->name,
                            operation->sequence);
  }
  Status status = std::move(operation->status);
  operation->status = OkStatus();
  // A failed operation may still have transfers that the transport could not cancel, so it is not
  // reused.
  if (status.ok()) free_.push_back(operation);
  return status;
}

Status Engine::Drive(const std::function<StatusOr<bool>(Transport&)>& advance,
                     MonotonicTime deadline) {
  Lock lock = LockMutex();
  Status failure;
  bool finished = false;
  const auto done = [&] {
    if (finished || !failure.ok()) return true;
    StatusOr<bool> result = advance(*transport_);
    if (!result.ok()) {
      failure = result.status();
    } else {
      finished = *result;
    }
    return finished || !failure.ok();
  };
  WaitUntil(lock, done, deadline, nullptr);
  if (!failure.ok()) return failure;
  if (finished) return OkStatus();
  if (aborted()) return abort_status();
  return DeadlineExceeded("it did not complete within its limit");
}

void Engine::StartProgressThread() {
  if (!progress_thread_.joinable()) {
    progress_thread_ = std::thread([this] { ProgressLoop(); });
  } else if (progress_idle_) {
    progress_event_.Signal();
  }
}

void Engine::ProgressLoop() {
  Lock lock = LockMutex();
  while (!stopping_ && !aborted()) {
    if (waiting_ == 0) AdvanceAll();
    CheckHang(Now());
    if (aborted()) break;
    const bool idle = active_.empty();
    const bool standby = !idle && waiting_ > 0;
    if (!idle && !standby && !transport_->Arm()) {
      lock.unlock();
      lock = LockMutex();
      continue;
    }
    progress_idle_ = idle;
    const int descriptor = idle || standby ? -1 : transport_->event_descriptor();
    lock.unlock();
    Sleep({descriptor, progress_event_.get(), abort_event_.get()},
          idle ? kIdleLimit : (standby ? kStandbyLimit : kSleepLimit));
    lock = LockMutex();
    progress_event_.Drain();
  }
  if (aborted()) FailAll();
}

Status Engine::Close(Duration limit) {
  if (closed_) return OkStatus();
  const MonotonicTime deadline = Now() + limit;
  {
    const Lock lock = LockMutex();
    stopping_ = true;
    if (!active_.empty()) {
      Abort(Cancelled("the network was closed with {} operations pending", active_.size()));
      FailAll();
    }
  }
  progress_event_.Signal();
  if (progress_thread_.joinable()) progress_thread_.join();
  const bool flush = !aborted();
  Abort(Cancelled("the network is closed"));
  Lock lock = LockMutex();
  closed_ = true;
  // Waiting threads have been notified of the abort; they still need the mutex to leave.
  while (waiting_ > 0) {
    if (Now() > deadline) return DeadlineExceeded("{} threads still wait for operations", waiting_);
    lock.unlock();
    ::sched_yield();
    lock.lock();
  }
  return transport_->Close(flush, deadline - Now());
}

uint64_t Engine::Digest(const Group& group) const {
  const Lock lock = LockMutex();
  return group.digest.value();
}

}  // namespace troupe::collective_internal
