// The API server over HTTP (libcurl): one thread waits for answers and the watch at the same time.
//
// Every request has a time limit. TLS verifies the server by the ca.crt of the service account,
// whose token is read again once a minute. The lines of a watch that wait are bounded; behind them
// the connection waits.
#ifndef TROUPE_COORDINATOR_KUBERNETES_API_CLIENT_H_
#define TROUPE_COORDINATOR_KUBERNETES_API_CLIENT_H_

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "coordinator/kubernetes/api_server.h"

namespace troupe {

struct ApiClientOptions {
  std::string url;        // https://HOST:PORT, or http:// on the loopback
  std::string directory;  // has token, ca.crt and namespace of the service account
};

// The mounted directory of a pod's service account.
inline constexpr char kServiceAccountDirectory[] = "/var/run/secrets/kubernetes.io/serviceaccount";

// INVALID_ARGUMENT if the URL is none of the above; with https, if there is no ca.crt.
Status CheckApiClient(const ApiClientOptions& options);

// Used by one thread, except Wake and Stop, which are thread-safe.
class ApiClient final : public ApiServer {
 public:
  // REQUIRES: CheckApiClient accepts the options. `clock` outlives the client.
  ApiClient(ApiClientOptions options, const Clock& clock);
  ~ApiClient() override;

  ApiAnswer Call(const ApiRequest& request) override;
  void OpenWatch(const std::string& path) override;
  void CloseWatch() override;
  WatchRead ReadWatch(Duration limit) override;

  // Ends the present wait in ReadWatch, or the next one.
  void Wake();
  // Ends this call and all later ones at once.
  void Stop();

 private:
  class Connections;
  const std::unique_ptr<Connections> connections_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_API_CLIENT_H_
