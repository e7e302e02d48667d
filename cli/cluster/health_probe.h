// One health request to a process of a local cluster: GET /health on its metrics port, through a
// non-blocking socket. For use by one thread.
#ifndef TROUPE_CLI_CLUSTER_HEALTH_PROBE_H_
#define TROUPE_CLI_CLUSTER_HEALTH_PROBE_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

// Returns metric::kHealthAge from an HTTP response to /health; absent if the response is not one.
std::optional<double> HealthAgeIn(std::string_view response);

class HealthProbe {
 public:
  // Connects to `port` of 127.0.0.1.
  explicit HealthProbe(int port);
  ~HealthProbe();
  HealthProbe(const HealthProbe&) = delete;
  HealthProbe& operator=(const HealthProbe&) = delete;

  enum class State {
    kWaiting,
    kAnswered,  // age() is the time since the process last worked
    kFailed,    // connection refused, or an invalid response
  };
  // Proceeds as far as possible without blocking.
  State Turn();
  std::chrono::duration<double> age() const { return age_; }

 private:
  State Read();

  int socket_ = -1;
  bool asked_ = false;
  std::string response_;
  std::chrono::duration<double> age_{};
};

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_HEALTH_PROBE_H_
