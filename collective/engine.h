// What drives the operations of one network: threads, waiting, abort, limits.
//
// One mutex guards the transport and every operation. Whoever waits makes progress for all: spins
// while the host has a core for each rank, else yields for a moment; then sleeps on the transport's
// event descriptor. The progress thread, made at the first asynchronous operation, stands in while
// nobody waits.
//
// Abort takes no part in that mutex: it sets a flag that every wait polls and an event that every
// sleeper polls.
#ifndef TROUPE_COLLECTIVE_ENGINE_H_
#define TROUPE_COLLECTIVE_ENGINE_H_

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "collective/active_operation.h"
#include "collective/event_descriptor.h"
#include "collective/flight_recorder.h"
#include "collective/network.h"
#include "collective/transport.h"

namespace troupe::collective_internal {

// Thread-safe but for Close and the destructor.
class Engine {
 public:
  Engine(const NetworkOptions& options, std::unique_ptr<Transport> transport);
  ~Engine();

  // Issues an operation; on OK it belongs to the caller until Release (or until Wait returns it
  // released).
  Status Start(Group* group, const Request& request, ActiveOperation** operation);

  // Start and wait in the caller's thread.
  Status Run(Group* group, const Request& request);

  // True once finished. Makes progress.
  bool Test(ActiveOperation* operation);

  // Until finished; or until `deadline`, if given: then DEADLINE_EXCEEDED with *finished false.
  // Releases a finished operation.
  Status Wait(ActiveOperation* operation, std::optional<MonotonicTime> deadline, bool* finished);

  // Runs `advance` under the mutex, with progress between calls, until it returns true or an error,
  // the network is aborted, or `deadline` passes (DEADLINE_EXCEEDED).
  Status Drive(const std::function<StatusOr<bool>(Transport&)>& advance, MonotonicTime deadline);

  // Allows operations of groups of more than one rank.
  void Open();

  // Whether waits begin by spinning.
  void SetSpinning(bool spins) {
    spin_limit_.store(spins ? kSpinLimit : Duration::zero(), std::memory_order_relaxed);
  }

  void Abort(Status status);
  bool aborted() const { return aborted_.load(std::memory_order_acquire); }
  Status abort_status() const;

  Status Close(Duration limit);

  const std::string& address() const { return address_; }
  uint64_t Digest(const Group& group) const;
  std::string FlightRecorderJson(std::string_view device) const;
  // Adds the totals of `group`.
  void AddStatistics(const Group& group, std::vector<CollectiveStatistics>* statistics) const;
  std::array<PurposeSeconds, kPurposes> SecondsByPurpose() const;
  std::vector<RecordedOperation> RecordedOperations(bool* complete) const;
  CollectiveFlight FlightOf(const Group& group) const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  // How long a wait spins where this rank has a core of its own, before it sleeps: waking costs
  // some 10 us, a core that spins costs whoever else wants it.
  static constexpr Duration kSpinLimit = std::chrono::milliseconds(1);

  // Takes the mutex, telling a spinning holder to let go.
  Lock TakeMutex() const;
  void AdvanceAll();
  void Complete(ActiveOperation* operation, std::vector<int> awaited = {});
  void AddExposed(const ActiveOperation& operation, Duration time);
  static std::vector<int> AwaitedGlobalRanks(const ActiveOperation& operation);
  void FailAll();
  // Likewise, of an operation that a thread waits for. REQUIRES: the mutex is held.
  static CollectiveFlight FlightIn(const ActiveOperation& operation, MonotonicTime now);
  // Aborts the network if its oldest operation is past the hang limit.
  void CheckHang(MonotonicTime now);
  std::string DescribeHang(const ActiveOperation& operation, MonotonicTime now) const;
  // The one waiting loop. Returns when `done` (called under the lock) is true, on abort, or past
  // `deadline`.
  void WaitUntil(Lock& lock, const std::function<bool()>& done,
                 std::optional<MonotonicTime> deadline, const EventDescriptor** sleeper);
  void StartProgressThread();
  void ProgressLoop();

  const NetworkOptions options_;
  const MonotonicTime made_;
  std::atomic<Duration> spin_limit_;
  std::string address_;

  mutable std::mutex mutex_;
  mutable std::atomic<int> wanting_mutex_ = 0;
  std::unique_ptr<Transport> transport_;
  std::vector<std::unique_ptr<ActiveOperation>> operations_;
  std::vector<ActiveOperation*> free_;
  std::vector<ActiveOperation*> active_;  // in the order of issue
  FlightRecorder recorder_;
  std::array<Duration, kPurposes> total_by_purpose_{};
  std::array<Duration, kPurposes> exposed_by_purpose_{};
  int waiting_ = 0;  // threads inside WaitUntil
  bool open_ = false;
  bool closed_ = false;

  std::thread progress_thread_;
  EventDescriptor progress_event_;
  bool progress_idle_ = false;  // the progress thread sleeps until it is signalled
  bool stopping_ = false;

  mutable std::mutex abort_mutex_;
  Status abort_status_;
  std::atomic<bool> aborted_ = false;
  EventDescriptor abort_event_;  // stays readable once aborted
};

}  // namespace troupe::collective_internal

#endif  // TROUPE_COLLECTIVE_ENGINE_H_
