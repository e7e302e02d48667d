// The flags that decide when and for how long a worker drains.
#ifndef TROUPE_WORKER_DAEMON_DRAIN_FLAGS_H_
#define TROUPE_WORKER_DAEMON_DRAIN_FLAGS_H_

#include <optional>
#include <string>

#include "base/flag_parser.h"
#include "base/status.h"
#include "worker/daemon/spot_notice.h"

namespace troupe {

struct DrainFlags {
  int seconds = 110;  // Kubernetes and systemd kill after 120 s
  std::optional<SpotProvider> spot;
  std::string metadata_url;
};

// Adds --drain-seconds, --spot-notice and --metadata-url. `flags` outlives the parser.
void AddDrainFlags(FlagParser& parser, DrainFlags* flags);

// INVALID_ARGUMENT for flags without effect, and for a --metadata-url that names no host and port.
Status CheckDrainFlags(const DrainFlags& flags);

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_DRAIN_FLAGS_H_
