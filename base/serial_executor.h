// Runs tasks on its own thread, in order, one at a time. It is for slow work, such as file
// operations, that must not block an event loop.
#ifndef TROUPE_BASE_SERIAL_EXECUTOR_H_
#define TROUPE_BASE_SERIAL_EXECUTOR_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace troupe {

// Thread-safe.
class SerialExecutor {
 public:
  explicit SerialExecutor(size_t max_waiting);
  ~SerialExecutor() { Stop(); }
  SerialExecutor(const SerialExecutor&) = delete;
  SerialExecutor& operator=(const SerialExecutor&) = delete;

  // Returns false and drops the task if `max_waiting` tasks are waiting already, or after Stop.
  bool Run(std::function<void()> task);

  // Waits for the running task to finish and drops the waiting ones. Idempotent. REQUIRES: not
  // called by a task.
  void Stop();

 private:
  void Loop();

  const size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_SERIAL_EXECUTOR_H_
