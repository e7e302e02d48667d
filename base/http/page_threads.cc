#include "base/http/page_threads.h"

#include <utility>

#include "base/http/block_signals.h"

namespace troupe {

PageThreads::PageThreads(Options options) : options_(std::move(options)) {
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Loop(); });
}

PageThreads::~PageThreads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<PageThreads::Asked> PageThreads::Ask(HttpRequest request) {
  auto asked = std::make_shared<Asked>(std::move(request));
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [](const std::weak_ptr<Asked>& other) { return other.expired(); });
    // An idle thread takes a request at once, so that it does not wait.
    const size_t most = options_.most_waiting + static_cast<size_t>(options_.threads);
    if (waiting_.size() + in_progress_ >= most) return nullptr;
    waiting_.push_back(asked);
  }
  changed_.notify_one();
  return asked;
}

std::optional<HttpPage> PageThreads::Take(Asked* asked) {
  const std::lock_guard lock(mutex_);
  return std::exchange(asked->page_, std::nullopt);
}

void PageThreads::Loop() {
  BlockSignals();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const std::shared_ptr<Asked> asked = waiting_.front().lock();
    waiting_.pop_front();
    if (asked == nullptr) continue;
    ++in_progress_;
    lock.unlock();
    HttpPage page = options_.pages(asked->request_);
    lock.lock();
    --in_progress_;
    asked->page_ = std::move(page);
    options_.on_made();
  }
}

}  // namespace troupe
