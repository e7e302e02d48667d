// Counts what each user has of one kind, such as open streams, and limits it.
#ifndef TROUPE_COORDINATOR_SERVICE_USER_COUNTS_H_
#define TROUPE_COORDINATOR_SERVICE_USER_COUNTS_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/status.h"

namespace troupe {

// Counts one of its kind as long as it lives.
using UserTicket = std::shared_ptr<const void>;

struct UserLimit {
  int most = 0;      // one user has this many at a time
  std::string kind;  // a plural for messages, such as "open streams"
  std::string flag;  // sets `most`; empty: nothing does
};

// Thread-safe.
class UserCounts {
 public:
  explicit UserCounts(UserLimit limit)
      : limit_(std::move(limit)), held_(std::make_shared<Held>()) {}

  // RESOURCE_EXHAUSTED, naming the user and both numbers, if the user has too many. `user`: an
  // identity; empty: not known, so not limited. Tickets may outlive this object.
  StatusOr<UserTicket> Add(const std::string& user) const;

 private:
  struct Held {
    std::mutex mutex;
    std::map<std::string, int> counts;  // users with tickets
  };

  const UserLimit limit_;
  const std::shared_ptr<Held> held_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_USER_COUNTS_H_
