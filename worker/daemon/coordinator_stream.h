// One connection attempt and stream of the session to the coordinator, over gRPC.
#ifndef TROUPE_WORKER_DAEMON_COORDINATOR_STREAM_H_
#define TROUPE_WORKER_DAEMON_COORDINATOR_STREAM_H_

#include <functional>
#include <memory>
#include <string>

#include "troupe/v1/worker.pb.h"

namespace troupe {

// Called from gRPC's threads; none is called after `on_closed`.
struct StreamCallbacks {
  std::function<void(v1::CoordinatorMessage)> on_message;
  std::function<void(std::string reason)> on_closed;
};

// Thread-safe. May be destroyed at any time: the call is then cancelled, but its callbacks may
// still run.
class CoordinatorStream {
 public:
  virtual ~CoordinatorStream() = default;
  // Queues a message; drops it once the stream has ended.
  virtual void Send(v1::WorkerMessage message) = 0;
};

// Opens streams to one coordinator. Thread-safe.
class CoordinatorDialer {
 public:
  explicit CoordinatorDialer(const std::string& address);
  ~CoordinatorDialer();

  // Begins a stream; a failure to connect is reported by on_closed.
  std::unique_ptr<CoordinatorStream> Dial(StreamCallbacks callbacks);

 private:
  struct Channel;
  const std::unique_ptr<Channel> channel_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_COORDINATOR_STREAM_H_
