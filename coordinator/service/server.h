// A listening coordinator: the catalog on disk, the engine, the gRPC services and the metrics.
#ifndef TROUPE_COORDINATOR_SERVICE_SERVER_H_
#define TROUPE_COORDINATOR_SERVICE_SERVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/security/tls_files.h"
#include "base/status.h"
#include "coordinator/kubernetes/kubernetes_options.h"
#include "coordinator/service/call_guard.h"
#include "coordinator/service/data_check.h"
#include "coordinator/service/enrollment_service.h"
#include "coordinator/service/namespaces_watch.h"
#include "coordinator/state/options.h"
#include "coordinator/state/planner.h"

namespace troupe {

struct ConnectionTimes {
  // A connection that has not become HTTP/2 by then, TLS included, is closed.
  std::chrono::milliseconds handshake = std::chrono::seconds(10);
  // With TLS, later calls use a new connection, made with the certificate that the client has then.
  std::chrono::milliseconds age = std::chrono::minutes(10);
  // With TLS, a connection whose calls have not ended this long after `age` is closed with them.
  // The end of a call's request, and the reading of its answer, depend on the client alone. Workers
  // and watchers dial again; by default, a worker's certificate is valid for as long.
  std::chrono::milliseconds grace = std::chrono::hours(24);
};

struct ServerOptions {
  std::string listen = "127.0.0.1:0";  // HOST:PORT; port 0 selects a free one
  std::string metrics_listen;          // HOST:PORT; empty: no metrics over HTTP
  std::string health_listen;           // HOST:PORT; empty: no pages for a kubelet
  std::string page_listen;             // HOST:PORT; empty: no web page
  std::string data_directory;          // created if absent; its parent exists
  // Folder beneath which jobs that state no checkpoint.folder save, absolute; empty: checkpoints in
  // data_directory.
  std::string checkpoint_root;
  double detection_seconds = 3;
  // Half-life of the weight of a fault charged to its host; absent: the value of MakeTimeLimits.
  std::optional<double> blame_half_life_seconds;
  // With TLS, a caller may call what the role in its certificate or token may, and with neither
  // almost nothing (access.h). REQUIRES: the files are those of a coordinator.
  std::optional<TlsFiles> tls;
  // With it, the coordinator signs certificates of workers. REQUIRES: `tls` is set.
  std::optional<EnrollmentOptions> enrollment;
  std::optional<NamespacesFile> namespaces;  // absent: there are none
  // With it, the API server of Kubernetes is used. REQUIRES: the options are complete.
  std::optional<KubernetesOptions> kubernetes;
  int most_user_jobs = 1000;  // that have not ended, of one identity
  UserLimits user_limits;
  // Connections of one address at a time, except on the loopback; absent: a quarter of all.
  std::optional<int> most_address_connections;
  ConnectionTimes connection_times;
  bool insecure = false;        // the user insists on listening off the loopback without TLS
  int descriptor_limit = 1024;  // this process's limit: bounds the connections
  Planner planner = MakePlanner();
  CheckFiles check_files = CheckJobFiles;         // called for each new job
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

  // Ends all streams and the page, and closes the catalog, within a second; metrics are still
  // served. Idempotent.
  void Stop();

  std::string address() const;  // HOST:PORT as bound
  int port() const;
  int metrics_port() const;         // 0: none
  std::string metrics_url() const;  // empty: none
  int health_port() const;          // 0: none
  std::string page_url() const;     // empty: none

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_SERVER_H_
