// Handles Ctrl-C (SIGINT) and SIGTERM by calls on a separate thread, which may therefore take
// locks.
#ifndef TROUPE_CLI_INTERRUPT_H_
#define TROUPE_CLI_INTERRUPT_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

namespace troupe {

// At most one exists in a process at a time. Thread-safe.
class InterruptWatch {
 public:
  // Blocks the signals in the calling thread and those it starts later. REQUIRES: created before
  // any other thread.
  InterruptWatch();
  ~InterruptWatch();

  // Runs `action` for each signal until it is replaced; null runs nothing. If a signal has already
  // arrived, also runs it at once on the calling thread. On return the former action is not
  // running. `action` runs under the object's lock.
  void OnInterrupt(std::function<void()> action);
  bool interrupted() const { return interrupted_.load(); }

 private:
  void Run();

  std::atomic<bool> interrupted_{false};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::function<void()> action_;
  std::thread thread_;
};

// Cancels `context` on an interrupt, for as long as this object exists.
class CancelOnInterrupt {
 public:
  CancelOnInterrupt(InterruptWatch* interrupt, grpc::ClientContext* context)
      : interrupt_(interrupt) {
    interrupt_->OnInterrupt([context] { context->TryCancel(); });
  }
  ~CancelOnInterrupt() { interrupt_->OnInterrupt(nullptr); }
  CancelOnInterrupt(const CancelOnInterrupt&) = delete;
  CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;

 private:
  InterruptWatch* const interrupt_;
};

}  // namespace troupe

#endif  // TROUPE_CLI_INTERRUPT_H_
