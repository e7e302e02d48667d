// Listens for connections and passes them on for the life of the process; gRPC's own listener ends
// permanently when no file descriptor is free. A number of descriptors is reserved for the rest of
// the process (catalog, files). A connection above that bound, or above the limit of its peer's
// address (peer_connections.h), is closed at once, and its client may dial again.
#ifndef TROUPE_COORDINATOR_SERVICE_CONNECTION_ACCEPTOR_H_
#define TROUPE_COORDINATOR_SERVICE_CONNECTION_ACCEPTOR_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/http/listen_sockets.h"
#include "base/last_sign.h"
#include "base/status.h"
#include "coordinator/service/peer_connections.h"

namespace troupe {

// Returns the lowest descriptor number that a connection may not have, in a process limited to
// `descriptor_limit` descriptors. The kernel assigns the lowest free number, so this also bounds
// how many are open.
int FirstRefusedDescriptor(int descriptor_limit);

// Returns the most connections of one address, unless it is stated: a quarter of all.
int MostAddressConnections(int first_refused);

class ConnectionAcceptor {
 public:
  // Listens on `listen`, HOST:PORT; port 0 selects a free one. Returns UNAVAILABLE with the reason
  // on failure. Connections wait until Start.
  static StatusOr<std::unique_ptr<ConnectionAcceptor>> Listen(const std::string& listen);
  ~ConnectionAcceptor();

  int port() const { return listeners_.port(); }

  struct Handlers {
    std::function<void(int listener, int connection)> accepted;  // takes ownership of `connection`
    // the connection was closed because too many are open
    std::function<void()> refused;
  };
  struct Limits {
    int first_refused = 0;             // descriptor
    int most_address_connections = 0;  // at a time, except on the loopback
  };
  // Accepts connections on its own thread. REQUIRES: called once; `first_refused` is above all
  // descriptors open now.
  void Start(Handlers handlers, const Limits& limits);

  // No handler is called after Stop returns. Idempotent.
  void Stop();

  // Returns the time since the thread's loop last iterated; it does so at least every half second.
  std::chrono::steady_clock::duration Age() const { return turned_.Age(); }

 private:
  ConnectionAcceptor() = default;
  void Run();
  void Accept(int listener);
  bool AdmitPeer(int connection, const std::string& peer);
  void DropOne(int listener);

  ListenSockets listeners_;
  int wake_ = -1;   // eventfd that wakes the thread for Stop
  int spare_ = -1;  // reserve, released briefly if no descriptor is free
  int first_refused_ = 0;
  std::optional<PeerConnections> peers_;
  Handlers handlers_;
  LastSign turned_;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_CONNECTION_ACCEPTOR_H_
