// Runs tasks on a thread of its own, in order, one at a time: for work that takes a while, such as
// that on files, and must not hold up a loop.
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

  // False, and the task is dropped, where `max_waiting` tasks wait already or after Stop.
  bool Run(std::function<void()> task);

  // Finishes the task that is under way; those that wait are dropped. Idempotent.
  // REQUIRES: not called by a task.
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
