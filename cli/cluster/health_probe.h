// One question to a process of a local cluster: GET /health of its metrics port, on a socket that
// never blocks. One thread.
#ifndef TROUPE_CLI_CLUSTER_HEALTH_PROBE_H_
#define TROUPE_CLI_CLUSTER_HEALTH_PROBE_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

// troupe_health_age_seconds of an HTTP response to /health; none where it is no such response.
std::optional<double> HealthAgeIn(std::string_view response);

class HealthProbe {
 public:
  // Dials `port` of 127.0.0.1.
  explicit HealthProbe(int port);
  ~HealthProbe();
  HealthProbe(const HealthProbe&) = delete;
  HealthProbe& operator=(const HealthProbe&) = delete;

  enum class State {
    kWaiting,
    kAnswered,  // age() says when the process last worked
    kFailed,    // nobody listens, or the answer is none
  };
  // Goes on as far as it can without waiting.
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
