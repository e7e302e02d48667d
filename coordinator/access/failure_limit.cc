#include "coordinator/access/failure_limit.h"

namespace troupe {

bool FailureLimit::Admit(MonotonicTime now) {
  while (!failures_.empty() && now - failures_.front() >= window_) failures_.pop_front();
  if (failures_.size() >= most_) return false;
  failures_.push_back(now);
  return true;
}

}  // namespace troupe
