// The notices by which a cloud announces that it takes this machine back: requests to its metadata
// service, and what the answers mean. Pure; worker/daemon/spot_watch.h sends the requests.
//
// AWS gives 2 minutes, the others 30 s. The times that answers state count, but never as more than
// ten minutes.
#ifndef TROUPE_WORKER_DAEMON_SPOT_NOTICE_H_
#define TROUPE_WORKER_DAEMON_SPOT_NOTICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace troupe {

enum class SpotProvider { kAws, kGcp, kAzure };

// INVALID_ARGUMENT unless `word` is aws, gcp or azure.
StatusOr<SpotProvider> ParseSpotProvider(std::string_view word);

// The URL of the provider's metadata service, without a path.
std::string MetadataUrlOf(SpotProvider provider);

struct MetadataRequest {
  std::string path;  // with the query
  std::vector<std::string> headers;
  bool is_put = false;
};

struct MetadataAnswer {
  int code = 0;
  std::string body;
};

struct SpotNotice {
  std::string reason;  // "a spot notice of aws: terminate"
  Duration left{};     // until the machine is gone
};

// One conversation with a metadata service, which is asked again and again.
class SpotConversation {
 public:
  explicit SpotConversation(SpotProvider provider) : provider_(provider) {}

  MetadataRequest Next() const;
  // Handles the answer to Next(). Returns the notice if there is one, and UNAVAILABLE for an answer
  // that the service does not give.
  StatusOr<std::optional<SpotNotice>> Handle(const MetadataAnswer& answer, int64_t unix_seconds);

 private:
  StatusOr<std::optional<SpotNotice>> HandleAws(const MetadataAnswer& answer, int64_t unix_seconds);
  StatusOr<std::optional<SpotNotice>> HandleGcp(const MetadataAnswer& answer) const;
  StatusOr<std::optional<SpotNotice>> HandleAzure(const MetadataAnswer& answer,
                                                  int64_t unix_seconds);

  const SpotProvider provider_;
  std::string token_;           // AWS: of this conversation; empty: to be requested
  bool is_token_used_ = false;  // AWS: whether the service has accepted the token
  std::string machine_name_;    // Azure: of this machine; empty: to be requested
};

// Decides which failures of a conversation are logged: one whose reason is not that of the last
// one, and not more than one in an interval, because the reasons of a broken service may alternate.
class SpotComplaints {
 public:
  static constexpr Duration kInterval = std::chrono::minutes(10);

  // Returns whether a failure with this reason is to be logged.
  bool IsNews(const std::string& reason, MonotonicTime now);
  // After a success, the same reason is news again.
  void Succeed() { last_.clear(); }

 private:
  std::string last_;  // the reason that was logged last; empty: none since the last success
  std::optional<MonotonicTime> logged_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_SPOT_NOTICE_H_
