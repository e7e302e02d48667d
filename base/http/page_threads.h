// Threads that make the pages of an HTTP server, for pages that take time.
#ifndef TROUPE_BASE_HTTP_PAGE_THREADS_H_
#define TROUPE_BASE_HTTP_PAGE_THREADS_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/http/http_page.h"

namespace troupe {

// Who asks for pages owns the requests: one that its owner drops is not begun, and if it is in
// progress, its page is dropped. Thread-safe.
class PageThreads {
 public:
  struct Options {
    HttpPages pages;  // called on all threads at once; may block, for a limited time
    int threads = 1;
    size_t most_waiting = 0;  // the most requests that wait for a thread
    // Called after each page, on its thread and with a lock that Ask and Take need: it only wakes.
    std::function<void()> on_made;
  };
  // A request, and its page once it is made.
  class Asked {
   public:
    explicit Asked(HttpRequest request) : request_(std::move(request)) {}

   private:
    friend class PageThreads;
    const HttpRequest request_;
    std::optional<HttpPage> page_;  // guarded by the mutex of PageThreads
  };

  explicit PageThreads(Options options);
  // Begins no further page, and waits for those in progress.
  ~PageThreads();
  PageThreads(const PageThreads&) = delete;
  PageThreads& operator=(const PageThreads&) = delete;

  // Enqueues the request. Null if too many wait.
  std::shared_ptr<Asked> Ask(HttpRequest request);
  // Returns the page, which `asked` then no longer has; absent if it is not made yet.
  std::optional<HttpPage> Take(Asked* asked);

 private:
  void Loop();

  const Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::weak_ptr<Asked>> waiting_;
  size_t in_progress_ = 0;  // pages
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_HTTP_PAGE_THREADS_H_
