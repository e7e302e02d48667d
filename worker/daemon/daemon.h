// The worker daemon: actors around the session machine (worker/session/session.h), which own the
// rank processes. docs/architecture.md lists them.
#ifndef TROUPE_WORKER_DAEMON_DAEMON_H_
#define TROUPE_WORKER_DAEMON_DAEMON_H_

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/security/tls_files.h"
#include "base/status.h"
#include "worker/daemon/spot_notice.h"
#include "worker/session/session.h"

namespace troupe {

struct DaemonOptions {
  std::string coordinator;      // HOST:PORT
  std::optional<TlsFiles> tls;  // dials with TLS
  bool insecure = false;        // --insecure is given
  std::string metrics_listen;   // HOST:PORT; empty: none. Port 0 selects a free one
  std::string host;             // the address of this machine, which others reach
  std::string health_listen;    // HOST:PORT; empty: none. Port 0 selects a free one
  session::Config session;      // identity without metrics_address
  std::string executable;       // the program of rank processes
  std::string core_table;       // directory of the host's core table (CoreTable); empty: none
  std::string nvml;             // library used to watch GPUs; see kNvmlLibrary
  // Time from the first SIGTERM until the daemon is killed, in which its jobs move; 0: SIGTERM ends
  // it at once.
  Duration drain_limit{};
  // Whose spot notices are heeded; absent: none.
  std::optional<SpotProvider> spot;
  std::string metadata_url;  // the metadata service; empty: the provider's
};

// Runs until SIGINT or a second SIGTERM, or after a first one until its ranks are gone or its time
// is up (returns 0), or until the coordinator refuses the worker permanently (1). Returns
// UNAVAILABLE if an address of its pages is in use. REQUIRES: called on the main thread, with those
// signals blocked in every thread.
StatusOr<int> RunDaemon(DaemonOptions options);

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_DAEMON_H_
