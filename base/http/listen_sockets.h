// The TCP sockets that listen on one address.
#ifndef TROUPE_BASE_HTTP_LISTEN_SOCKETS_H_
#define TROUPE_BASE_HTTP_LISTEN_SOCKETS_H_

#include <string>
#include <vector>

#include "base/status.h"

namespace troupe {

// Closes the sockets when it is destroyed. Not thread-safe.
class ListenSockets {
 public:
  // Listens on all addresses of `listen`, HOST:PORT; an empty host is every interface, and port 0
  // selects a free one. The sockets do not block. Returns UNAVAILABLE with the reason on failure.
  static StatusOr<ListenSockets> Open(const std::string& listen);

  ListenSockets() = default;  // listens on nothing
  ~ListenSockets();
  ListenSockets(ListenSockets&& other) noexcept;
  ListenSockets& operator=(ListenSockets&& other) noexcept;

  int port() const { return port_; }  // all sockets have the same
  const std::vector<int>& descriptors() const { return descriptors_; }

 private:
  Status Bind(const std::string& host, const std::string& port);

  int port_ = 0;
  std::vector<int> descriptors_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_HTTP_LISTEN_SOCKETS_H_
