// One connection attempt and stream of the session to the coordinator, over gRPC.
//
// Overload: if the coordinator reads so slowly that kMostUnwrittenMessages wait, the stream is
// cancelled, and on_closed gets the reason.
#ifndef TROUPE_WORKER_DAEMON_COORDINATOR_STREAM_H_
#define TROUPE_WORKER_DAEMON_COORDINATOR_STREAM_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/security/tls_files.h"
#include "base/status.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

// The end of a stream.
struct StreamEnd {
  std::string reason;
  // The coordinator refused the certificate of the connection, or the role in it.
  bool access_refused = false;
};

// Called from gRPC's threads; none is called after `on_closed`.
struct StreamCallbacks {
  // A message counts as unhandled until its `turn` is released. While this many are unhandled the
  // stream is not read, so the coordinator's writes wait.
  static constexpr int kUnhandledMax = 64;

  // An error cancels the stream.
  std::function<Status(v1::CoordinatorMessage message, std::shared_ptr<void> turn)> on_message;
  std::function<void(StreamEnd end)> on_closed;
};

// Thread-safe. May be destroyed at any time: the call is then cancelled, but its callbacks may
// still run.
class CoordinatorStream {
 public:
  virtual ~CoordinatorStream() = default;
  // Queues a message, with texts made UTF-8 (MakeTextsUtf8); drops it once the stream has ended or
  // is cancelled.
  virtual void Send(v1::WorkerMessage message) = 0;
};

// The most messages that wait to be written on a stream, with the one that is being written.
inline constexpr size_t kMostUnwrittenMessages = 65536;

// Opens streams to one coordinator. Thread-safe.
class CoordinatorDialer {
 public:
  // With `tls`, the streams use TLS and accept a coordinator of the certificate's cluster only.
  explicit CoordinatorDialer(const std::string& address, const std::optional<TlsFiles>& tls = {},
                             size_t most_unwritten = kMostUnwrittenMessages);
  // Waits until its streams have ended and no turn of theirs is held, at most 10 seconds.
  // REQUIRES: its streams are destroyed, and this is none of gRPC's threads.
  ~CoordinatorDialer();

  // Begins a stream; a failure to connect is reported by on_closed. The connection is made anew,
  // for which the TLS files may be read, in two cases. If the last stream was destroyed before its
  // end, because nothing came over it for the length of a lease, its name may not have existed, or
  // have another address by now. If the coordinator refused the last stream's access, the files may
  // have another certificate by now. While the files are not usable (ReadUsableTls) it stays the
  // former one. REQUIRES: this is none of gRPC's threads.
  std::unique_ptr<CoordinatorStream> Dial(StreamCallbacks callbacks);

  // Makes the connection of later streams anew, with the certificate that the TLS files have now,
  // and cancels the stream that was dialled last, if it is open; its on_closed gets `reason`. A
  // connection lasts longer than a stream, and the coordinator ends the streams of one whose
  // certificate has expired. Reads the files. REQUIRES: this is none of gRPC's threads.
  void Reconnect(const std::string& reason);

 private:
  struct Channel;

  std::unique_ptr<Channel> Connect() const;
  // The same if the connection is stale and the files are usable; else null.
  std::unique_ptr<Channel> ConnectIfStale() const;
  // Later streams use `made`. REQUIRES: mutex_ is held.
  void Replace(std::unique_ptr<Channel> made);

  const std::string address_;
  const std::optional<TlsFiles> tls_;
  const size_t most_unwritten_;
  // Whether the last stream was given up, or its access refused.
  const std::shared_ptr<std::atomic<bool>> is_stale_ = std::make_shared<std::atomic<bool>>(false);
  std::mutex mutex_;  // guards the members below
  std::unique_ptr<Channel> channel_;
  std::vector<std::unique_ptr<Channel>> former_;            // those with streams that may be open
  std::function<void(const std::string& reason)> hang_up_;  // ends the last stream
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_COORDINATOR_STREAM_H_
