// Keeps the signals of the process away from the threads of an HTTP server.
#ifndef TROUPE_BASE_HTTP_BLOCK_SIGNALS_H_
#define TROUPE_BASE_HTTP_BLOCK_SIGNALS_H_

#include <pthread.h>
#include <signal.h>

namespace troupe {

// Blocks all signals on the calling thread: those of the process are for others, and OpenSSL writes
// to sockets whose clients have gone.
inline void BlockSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace troupe

#endif  // TROUPE_BASE_HTTP_BLOCK_SIGNALS_H_
