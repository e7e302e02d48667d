// The contexts of the page's calls that are open, so that they can be ended before the services
// are: a call that begins on an in-process channel without a server ends the process.
#ifndef TROUPE_COORDINATOR_PAGE_PAGE_CONTEXTS_H_
#define TROUPE_COORDINATOR_PAGE_PAGE_CONTEXTS_H_

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <set>

#include "base/status.h"

namespace troupe {

// Thread-safe.
class PageContexts {
 public:
  // Cancels the calls that are open. None begins after it.
  void EndAll();

 private:
  friend class PageContext;

  std::mutex mutex_;  // guards the members below
  bool ended_ = false;
  std::set<grpc::ClientContext*> open_;
};

// The context of one call, which is open until the object is destroyed. Used by one thread.
class PageContext {
 public:
  // `contexts` outlives the object.
  explicit PageContext(PageContexts& contexts) : contexts_(contexts) {}
  ~PageContext();
  PageContext(const PageContext&) = delete;
  PageContext& operator=(const PageContext&) = delete;

  // CANCELLED after EndAll: the call must not begin.
  Status Open();

  grpc::ClientContext* get() { return &context_; }

 private:
  PageContexts& contexts_;
  grpc::ClientContext context_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PAGE_PAGE_CONTEXTS_H_
