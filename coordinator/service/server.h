// A listening coordinator: the catalog on disk, the engine, the gRPC services and the metrics.
#ifndef TROUPE_COORDINATOR_SERVICE_SERVER_H_
#define TROUPE_COORDINATOR_SERVICE_SERVER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/security/tls_files.h"
#include "base/status.h"
#include "coordinator/service/enrollment_service.h"
#include "coordinator/service/namespaces_watch.h"
#include "coordinator/state/options.h"
#include "coordinator/state/planner.h"

namespace troupe {

struct ServerOptions {
  std::string listen = "127.0.0.1:0";  // HOST:PORT; port 0 selects a free one
  std::string metrics_listen;          // HOST:PORT; empty: no metrics over HTTP
  std::string health_listen;           // HOST:PORT; empty: no pages for a kubelet
  std::string data_directory;          // created if absent; its parent exists
  double detection_seconds = 3;
  // Half-life of the weight of a fault charged to its host; absent: the value of MakeTimeLimits.
  std::optional<double> blame_half_life_seconds;
  // With TLS, a caller may call what the role in its certificate or token may, and with neither
  // almost nothing (access.h). REQUIRES: the files are those of a coordinator.
  std::optional<TlsFiles> tls;
  // With it, the coordinator signs certificates of workers. REQUIRES: `tls` is set.
  std::optional<EnrollmentOptions> enrollment;
  std::optional<NamespacesFile> namespaces;  // absent: there are none
  int most_user_jobs = 1000;                 // that have not ended, of one identity
  int most_user_streams = 64;                // open at a time, of one identity
  bool insecure = false;        // the user insists on listening off the loopback without TLS
  int descriptor_limit = 1024;  // this process's limit: bounds the connections
  Planner planner = MakePlanner();
  KeepEnded keep_ended;                           // by default all
  std::function<void(const Status&)> on_failure;  // the catalog failed: the process has to end
  const Clock* clock = nullptr;                   // outlives the server; null: the system's
};

// Thread-safe.
class Server {
 public:
  // FAILED_PRECONDITION if another coordinator has the data directory; UNAVAILABLE if an address is
  // taken; DATA_LOSS if the catalog is damaged.
  static StatusOr<std::unique_ptr<Server>> Start(ServerOptions options);
  ~Server();

  // Ends all streams and closes the catalog within a second; metrics are still served. Idempotent.
  void Stop();

  std::string address() const;  // HOST:PORT as bound
  int port() const;
  int metrics_port() const;         // 0: none
  std::string metrics_url() const;  // empty: none
  int health_port() const;          // 0: none

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_SERVER_H_
