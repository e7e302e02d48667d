// The worker daemon: actors around the session machine (worker/session/session.h), which own the
// rank processes. docs/architecture.md lists them.
#ifndef TROUPE_WORKER_DAEMON_DAEMON_H_
#define TROUPE_WORKER_DAEMON_DAEMON_H_

#include <optional>
#include <string>

#include "base/security/tls_files.h"
#include "base/status.h"
#include "worker/session/session.h"

namespace troupe {

struct DaemonOptions {
  std::string coordinator;      // HOST:PORT
  std::optional<TlsFiles> tls;  // dials with TLS
  bool insecure = false;        // --insecure is given
  std::string metrics_listen;   // HOST:PORT; empty: none. Port 0 selects a free one
  std::string health_listen;    // HOST:PORT; empty: none. Port 0 selects a free one
  session::Config session;      // identity without metrics_address
  std::string executable;       // the program of rank processes
  std::string core_table;       // directory of the host's core table (CoreTable); empty: none
  std::string nvml;             // library used to watch GPUs; see kNvmlLibrary
};

// Runs until SIGTERM or SIGINT (returns 0), or until the coordinator refuses the worker permanently
// (1). Returns UNAVAILABLE if an address of its pages is in use. REQUIRES: called on the main
// thread, with those signals blocked in every thread.
StatusOr<int> RunDaemon(DaemonOptions options);

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_DAEMON_H_
