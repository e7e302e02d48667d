#include "coordinator/page/page_contexts.h"

namespace troupe {

void PageContexts::EndAll() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  for (grpc::ClientContext* const context : open_) context->TryCancel();
}

PageContext::~PageContext() {
  const std::lock_guard lock(contexts_.mutex_);
  contexts_.open_.erase(&context_);
}

Status PageContext::Open() {
  const std::lock_guard lock(contexts_.mutex_);
  if (contexts_.ended_) return Cancelled("the coordinator ends");
  contexts_.open_.insert(&context_);
  return OkStatus();
}

}  // namespace troupe
