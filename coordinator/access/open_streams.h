// The streams that are open now, with their callers: a stream ends when its caller's certificate or
// token expires or is revoked. Pure.
#ifndef TROUPE_COORDINATOR_ACCESS_OPEN_STREAMS_H_
#define TROUPE_COORDINATOR_ACCESS_OPEN_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "coordinator/access/caller.h"

namespace troupe {

struct OpenStream {
  Caller caller;
  std::string rpc;
  std::function<void(const Status&)> end;  // ends the stream with this status
};

// A stream whose caller's access has ended.
struct RefusedStream {
  OpenStream stream;
  Status reason;
};

// Not thread-safe.
class OpenStreams {
 public:
  // Returns the number of the stream, above zero.
  uint64_t Add(OpenStream stream);
  // Has no effect on a number that is not there.
  void Remove(uint64_t number);

  // Removes and returns the streams whose callers `check` refuses.
  using Check = std::function<Status(const Caller&)>;
  std::vector<RefusedStream> RemoveRefused(const Check& check);

  // Whether the certificate or token of a stream has expired at `now`.
  bool HasExpired(int64_t now) const { return !expiries_.empty() && *expiries_.begin() <= now; }

  size_t size() const { return streams_.size(); }

 private:
  void Erase(std::map<uint64_t, OpenStream>::iterator stream);

  uint64_t last_ = 0;
  std::map<uint64_t, OpenStream> streams_;
  std::multiset<int64_t> expiries_;  // one for each stream
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ACCESS_OPEN_STREAMS_H_
