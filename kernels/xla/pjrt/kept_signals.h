// The process's own handling of signals, kept while the code of a plugin is loaded: libtpu installs
// handlers for crashes and for SIGTERM, even where the process has its own or ignores the signal.
#ifndef TROUPE_KERNELS_XLA_PJRT_KEPT_SIGNALS_H_
#define TROUPE_KERNELS_XLA_PJRT_KEPT_SIGNALS_H_

#include <signal.h>

#include <array>
#include <optional>

namespace troupe::kernels::xla {

// Reads the handlers of the process, and which signals it ignores, when it is made, and sets them
// again when it is destroyed. Signals with their default action are left to the plugin, which may
// need them: libtpu has a timer whose SIGPROF would end the process. No other thread may set
// handlers in between: they would be lost.
class KeptSignals {
 public:
  KeptSignals();
  ~KeptSignals();
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  // By the signal's number; absent: it has its default action.
  std::array<std::optional<struct sigaction>, NSIG> actions_;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_KEPT_SIGNALS_H_
