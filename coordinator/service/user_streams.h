// Counts the open streams of each user and limits them.
#ifndef TROUPE_COORDINATOR_SERVICE_USER_STREAMS_H_
#define TROUPE_COORDINATOR_SERVICE_USER_STREAMS_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/status.h"

namespace troupe {

// Counts a stream as open as long as it lives.
using StreamTicket = std::shared_ptr<const void>;

// Thread-safe.
class UserStreams {
 public:
  // `most`: streams of one user at a time.
  explicit UserStreams(int most) : most_(most), open_(std::make_shared<Open>()) {}

  // RESOURCE_EXHAUSTED, naming the user and both numbers, if the user has too many streams. `user`:
  // an identity; empty: not known, so not limited. Tickets may outlive this object.
  StatusOr<StreamTicket> Add(const std::string& user);

 private:
  struct Open {
    std::mutex mutex;
    std::map<std::string, int> counts;  // users with streams
  };

  const int most_;
  const std::shared_ptr<Open> open_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_USER_STREAMS_H_
