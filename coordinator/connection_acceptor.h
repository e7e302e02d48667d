// Listens for connections and hands them on, and never stops doing so: gRPC's own listener ends for
// good when a connection finds no file descriptor left. So many descriptors are kept for the rest
// of the process (the catalog, files); a connection above that bound is closed at once, and its
// client may dial again.
#ifndef TROUPE_COORDINATOR_CONNECTION_ACCEPTOR_H_
#define TROUPE_COORDINATOR_CONNECTION_ACCEPTOR_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/last_sign.h"
#include "base/status.h"

namespace troupe {

// The first descriptor number that a connection may not have, of a process that may have
// `descriptor_limit`: numbers are given from the lowest, so that as many are open.
int FirstRefusedDescriptor(int descriptor_limit);

class ConnectionAcceptor {
 public:
  // `listen` is HOST:PORT; port 0 takes a free one. UNAVAILABLE with the reason if it cannot be
  // listened on. Connections wait until Start.
  static StatusOr<std::unique_ptr<ConnectionAcceptor>> Listen(const std::string& listen);
  ~ConnectionAcceptor();

  int port() const { return port_; }

  struct Handlers {
    std::function<void(int listener, int connection)> accepted;  // owns `connection` from then on
    std::function<void()> refused;                               // it was closed: too many are open
  };
  // Accepts on a thread of its own. REQUIRES: called once; `first_refused` is above the descriptors
  // that are open now.
  void Start(Handlers handlers, int first_refused);

  // No handler is called after it. Idempotent.
  void Stop();

  // How long the thread has not turned; it does so at least every half second.
  std::chrono::steady_clock::duration Age() const { return turned_.Age(); }

 private:
  ConnectionAcceptor() = default;
  Status Bind(const std::string& host, const std::string& port);
  void Run();
  void Accept(int listener);
  void DropOne(int listener);

  int port_ = 0;
  std::vector<int> listeners_;
  int wake_ = -1;   // an eventfd: Stop
  int spare_ = -1;  // given up for a moment where no descriptor is left
  int first_refused_ = 0;
  Handlers handlers_;
  LastSign turned_;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_CONNECTION_ACCEPTOR_H_
