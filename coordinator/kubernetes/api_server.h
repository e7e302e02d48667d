// The API server of Kubernetes as the coordinator uses it.
#ifndef TROUPE_COORDINATOR_KUBERNETES_API_SERVER_H_
#define TROUPE_COORDINATOR_KUBERNETES_API_SERVER_H_

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace troupe {

// Codes of HTTP with which the API server answers.
struct HttpCode {
  static constexpr int kOk = 200;
  static constexpr int kUnauthorized = 401;
  static constexpr int kForbidden = 403;
  static constexpr int kNotFound = 404;
  static constexpr int kConflict = 409;
  static constexpr int kGone = 410;
  static constexpr int kTooLarge = 413;
  static constexpr int kUnprocessable = 422;
  static constexpr int kTooManyRequests = 429;
  static constexpr int kServerErrors = 500;  // and above
};

struct ApiRequest {
  std::string method = "GET";
  std::string path;  // with the query
  std::string content_type;
  std::string body;
};

struct ApiAnswer {
  int code = 0;  // the code of HTTP; 0: none
  std::string body;
  std::string error;                          // the reason for which there is no code
  std::optional<double> retry_after_seconds;  // as the server asks

  bool ok() const { return code >= 200 && code < 300; }
};

// A part of the answer to a watch.
struct WatchRead {
  std::vector<std::string> lines;  // whole ones, without their ends
  bool ended = false;              // the watch is closed; a line that was cut is dropped
  int code = 0;                    // the code of HTTP, if it has ended; 0: none
  std::string error;               // the reason for which it ended, if that was an error
};

// Used by one thread.
class ApiServer {
 public:
  virtual ~ApiServer() = default;

  // Waits for the answer, for a limited time.
  virtual ApiAnswer Call(const ApiRequest& request) = 0;

  // Opens a watch instead of the open one, if any.
  virtual void OpenWatch(const std::string& path) = 0;
  virtual void CloseWatch() = 0;
  // Waits until the open watch, if any, has lines or has ended, for at most `limit`.
  virtual WatchRead ReadWatch(Duration limit) = 0;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_API_SERVER_H_
