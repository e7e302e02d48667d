// One dial of the session's stream to the coordinator, over gRPC.
#ifndef TROUPE_WORKER_COORDINATOR_STREAM_H_
#define TROUPE_WORKER_COORDINATOR_STREAM_H_

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

// Thread-safe. May be destroyed at any time: the call is then cancelled and its callbacks may still
// come.
class CoordinatorStream {
 public:
  virtual ~CoordinatorStream() = default;
  // Queued; dropped once the stream has ended.
  virtual void Send(v1::WorkerMessage message) = 0;
};

// Streams to one coordinator. Thread-safe.
class CoordinatorDialer {
 public:
  explicit CoordinatorDialer(const std::string& address);
  ~CoordinatorDialer();

  // Begins a stream; failure to connect comes as on_closed.
  std::unique_ptr<CoordinatorStream> Dial(StreamCallbacks callbacks);

 private:
  struct Channel;
  const std::unique_ptr<Channel> channel_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COORDINATOR_STREAM_H_
