#include "coordinator/service/user_counts.h"

namespace troupe {

StatusOr<UserTicket> UserCounts::Add(const std::string& user) const {
  if (user.empty()) return UserTicket();
  const std::lock_guard lock(held_->mutex);
  int& count = held_->counts[user];
  if (count >= limit_.most) {
    const std::string flag = limit_.flag.empty() ? "" : fmt::format(" ({})", limit_.flag);
    return ResourceExhausted("{} has {} {}, and the limit of a user is {}{}", user, count,
                             limit_.kind, limit_.most, flag);
  }
  ++count;
  return UserTicket(held_.get(), [held = held_, user](const void*) {
    const std::lock_guard ending(held->mutex);
    const auto found = held->counts.find(user);
    if (--found->second == 0) held->counts.erase(found);
  });
}

}  // namespace troupe
