#include "coordinator/service/user_streams.h"

namespace troupe {

StatusOr<StreamTicket> UserStreams::Add(const std::string& user) {
  if (user.empty()) return StreamTicket();
  const std::lock_guard lock(open_->mutex);
  int& count = open_->counts[user];
  if (count >= most_) {
    return ResourceExhausted(
        "{} has {} open streams (watches and reads of logs), and the limit of a user is {} "
        "(--most-user-streams)",
        user, count, most_);
  }
  ++count;
  return StreamTicket(open_.get(), [open = open_, user](const void*) {
    const std::lock_guard ending(open->mutex);
    const auto found = open->counts.find(user);
    if (--found->second == 0) open->counts.erase(found);
  });
}

}  // namespace troupe
