#include "cli/interrupt.h"

#include <pthread.h>
#include <signal.h>

#include <ctime>

namespace troupe {
namespace {

sigset_t InterruptSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

InterruptWatch::InterruptWatch() {
  const sigset_t signals = InterruptSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([this] { Run(); });
}

InterruptWatch::~InterruptWatch() {
  stopping_ = true;
  pthread_kill(thread_.native_handle(), SIGTERM);  // ends its wait
  thread_.join();
}

void InterruptWatch::OnInterrupt(std::function<void()> action) {
  std::lock_guard lock(mutex_);
  action_ = std::move(action);
  if (action_ && interrupted_) action_();
}

void InterruptWatch::Run() {
  const sigset_t signals = InterruptSignals();
  while (!stopping_) {
    const timespec limit{.tv_sec = 0, .tv_nsec = 50'000'000};
    if (sigtimedwait(&signals, nullptr, &limit) < 0 || stopping_) continue;
    interrupted_ = true;
    std::lock_guard lock(mutex_);
    if (action_) action_();
  }
}

}  // namespace troupe
