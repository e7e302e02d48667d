// Drives the operations of one network: threads, waiting, abort and limits.
//
// One mutex guards the transport and every operation. A waiting thread makes progress for all: it
// spins for a time if each rank has a core of its own, else not at all, and then sleeps on the
// transport's event descriptor. The progress thread, created at the first asynchronous operation,
// takes over while no thread waits.
//
// Abort does not need that mutex: it sets a flag that every wait polls and signals an event that
// every sleeper polls.
//
// Invariants, under the mutex:
// - active_ has the operations that were issued and are not finished, the oldest first. After an
//   abort the next holder of the mutex that waits, tests or issues fails all of them.
// - The first abort decides the status; later ones have no effect.
// - An operation stays in memory as long as the engine, because the transport may access a
//   cancelled transfer until it is closed. Only an operation that ended OK is used again.
// - A group has at most kPendingMax (engine.cc) operations that are not finished, far fewer than
//   the sequence numbers that a tag distinguishes (network_test.cc:
//   ARankThatRunsFarAheadWaitsForItsPeers).
#ifndef TROUPE_COLLECTIVE_ENGINE_H_
#define TROUPE_COLLECTIVE_ENGINE_H_

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "collective/active_operation.h"
#include "collective/event_descriptor.h"
#include "collective/flight_recorder.h"
#include "collective/network_options.h"
#include "collective/statistics.h"
#include "collective/transport.h"

namespace troupe::collective_internal {

// Thread-safe except for Close and the destructor.
class Engine {
 public:
  Engine(const NetworkOptions& options, std::unique_ptr<Transport> transport);
  ~Engine();

  // Issues an operation. On OK the operation belongs to the caller until Wait returns with
  // *finished true.
  Status Start(Group* group, const Request& request, ActiveOperation** operation);

  // Calls Start and waits in the caller's thread.
  Status Run(Group* group, const Request& request);

  // True once finished. Makes progress.
  bool Test(ActiveOperation* operation);

  // Waits until the operation finished, or until `deadline`, if given; then returns
  // DEADLINE_EXCEEDED with *finished false. Releases a finished operation.
  Status Wait(ActiveOperation* operation, std::optional<MonotonicTime> deadline, bool* finished);

  // Calls `advance` under the mutex, with progress between calls, until it returns true or an
  // error, the network is aborted, or `deadline` passes (DEADLINE_EXCEEDED).
  Status Drive(const std::function<StatusOr<bool>(Transport&)>& advance, MonotonicTime deadline);

  // Allows operations of groups with more than one rank.
  void Open();

  // Sets whether waits begin by spinning.
  void SetSpinning(bool spins) {
    spin_limit_.store(spins ? kSpinLimit : Duration::zero(), std::memory_order_relaxed);
  }

  void Abort(Status status);
  bool aborted() const { return aborted_.load(std::memory_order_acquire); }
  Status abort_status() const;

  // The global ranks to which a link had failed when the network was aborted.
  std::set<int> UnreachedRanks() const;

  Status Close(Duration limit);

  const std::string& address() const { return address_; }
  uint64_t Digest(const Group& group) const;
  std::string FlightRecorderJson(std::string_view device) const;
  // Adds the totals of `group` to `statistics`.
  void AddStatistics(const Group& group, std::vector<CollectiveStatistics>* statistics) const;
  std::array<PurposeSeconds, kPurposes> SecondsByPurpose() const;
  std::vector<RecordedOperation> RecordedOperations(bool* complete) const;
  CollectiveFlight FlightOf(const Group& group) const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  // The time for which a wait spins before it sleeps, if this rank has a core of its own. Waking
  // costs about 10 us; a spinning core is lost to other threads.
  static constexpr Duration kSpinLimit = std::chrono::milliseconds(1);

  // Locks the mutex and asks a spinning holder to release it.
  Lock LockMutex() const;
  void AdvanceAll();
  void Complete(ActiveOperation* operation, std::vector<int> awaited = {});
  void AddExposed(const ActiveOperation& operation, Duration time);
  static std::vector<int> AwaitedGlobalRanks(const ActiveOperation& operation);
  void FailAll();
  // Returns the flight of an operation that a thread waits for. REQUIRES: the mutex is held.
  static CollectiveFlight FlightIn(const ActiveOperation& operation, MonotonicTime now);
  // Aborts the network if its oldest operation exceeds the hang limit.
  void CheckHang(MonotonicTime now);
  std::string DescribeHang(const ActiveOperation& operation, MonotonicTime now) const;
  // The only wait loop. Returns when `done` (called under the lock) is true, on abort, or after
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
  std::vector<ActiveOperation*> active_;  // in issue order
  FlightRecorder recorder_;
  std::set<int> unreached_;  // global ranks
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
  EventDescriptor abort_event_;  // stays readable after an abort
};

}  // namespace troupe::collective_internal

#endif  // TROUPE_COLLECTIVE_ENGINE_H_
