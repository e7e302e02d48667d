#include "coordinator/service/plan_desk.h"

#include <utility>

namespace troupe {

PlanDesk::PlanDesk(Options options) : options_(options) {
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Loop(); });
}

void PlanDesk::Run(std::function<void(const Status&)> task) {
  size_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    waiting = waiting_.size();
    if (waiting < options_.max_waiting) {
      waiting_.push_back({Clock::now() + options_.limit, std::move(task)});
      changed_.notify_one();
      return;
    }
  }
  task(ResourceExhausted("{} plans wait to be made, at most {} may: try again", waiting,
                         options_.max_waiting));
}

void PlanDesk::Stop() {
  {
    std::deque<Waiting> dropped;  // destroyed after the lock is released
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(waiting_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void PlanDesk::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    const bool late = Clock::now() > next.deadline;
    next.task(late ? DeadlineExceeded("the plan was not begun within {:.0f} s",
                                      std::chrono::duration<double>(options_.limit).count())
                   : OkStatus());
    lock.lock();
  }
}

}  // namespace troupe
