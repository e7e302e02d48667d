// Asks the metadata service of a cloud once a second whether this machine is taken back, on a
// thread of its own. Every request has a limit in time, so that a service that hangs only delays
// the notice. An answer that cannot be used is asked for again, and logged as
// SpotComplaints decides.
#ifndef TROUPE_WORKER_DAEMON_SPOT_WATCH_H_
#define TROUPE_WORKER_DAEMON_SPOT_WATCH_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/status.h"
#include "worker/daemon/spot_notice.h"

namespace troupe {

struct SpotWatchOptions {
  SpotProvider provider = SpotProvider::kAws;
  std::string url;  // the metadata service, such as MetadataUrlOf(provider)
  // Called on the thread with the notice, again until it returns OK, and then never again.
  std::function<Status(const SpotNotice& notice)> on_notice;
};

class SpotWatch {
 public:
  explicit SpotWatch(SpotWatchOptions options);
  // Waits for a request in progress, a second at most.
  ~SpotWatch();
  SpotWatch(const SpotWatch&) = delete;
  SpotWatch& operator=(const SpotWatch&) = delete;

 private:
  void Run();
  std::optional<SpotNotice> Ask(SpotConversation* conversation);

  const SpotWatchOptions options_;
  SpotComplaints complaints_;  // used by the thread only
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  std::thread thread_;  // the last member: it uses the others
};

// Sends the request to the service at `url`; never to a proxy. DEADLINE_EXCEEDED after `limit`,
// UNAVAILABLE without an answer or with one that is too large.
StatusOr<MetadataAnswer> AskMetadata(const std::string& url, const MetadataRequest& request,
                                     Duration limit);

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_SPOT_WATCH_H_
