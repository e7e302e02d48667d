#include "kernels/xla/pjrt/kept_signals.h"

namespace troupe::kernels::xla {

KeptSignals::KeptSignals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    // The C library refuses the signals that it uses itself.
    const bool is_read = sigaction(signal, nullptr, &action) == 0;
    if (is_read && action.sa_handler != SIG_DFL) actions_[signal] = action;
  }
}

KeptSignals::~KeptSignals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (actions_[signal]) sigaction(signal, &*actions_[signal], nullptr);
  }
}

}  // namespace troupe::kernels::xla
