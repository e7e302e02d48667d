// Ctrl-C (SIGINT) and SIGTERM as a call on a thread of its own, so that it may take locks.
#ifndef TROUPE_CLI_INTERRUPT_H_
#define TROUPE_CLI_INTERRUPT_H_

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

namespace troupe {

// One at a time in a process. Thread-safe.
class InterruptWatch {
 public:
  // Blocks the signals in the calling thread and those it starts later. REQUIRES: made before any other thread.
  InterruptWatch();
  ~InterruptWatch();

  // `action` runs (at once if a signal came already) for each signal until replaced; null: nothing runs. Once this
  // returns the former action is not running.
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

}  // namespace troupe

#endif  // TROUPE_CLI_INTERRUPT_H_
