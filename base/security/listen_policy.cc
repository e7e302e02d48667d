#include "base/security/listen_policy.h"

#include <arpa/inet.h>

#include <string>

namespace troupe {

namespace {

std::string_view WithoutBrackets(std::string_view host) {
  const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return has_brackets ? host.substr(1, host.size() - 2) : host;
}

}  // namespace

bool IsAnyHost(std::string_view host) {
  const std::string text(WithoutBrackets(host));
  in_addr four{};
  if (text.empty()) return true;
  if (inet_pton(AF_INET, text.c_str(), &four) == 1) return four.s_addr == INADDR_ANY;
  in6_addr six{};
  return inet_pton(AF_INET6, text.c_str(), &six) == 1 && IN6_IS_ADDR_UNSPECIFIED(&six);
}

bool IsLoopbackHost(std::string_view host) {
  host = WithoutBrackets(host);
  if (host == "localhost") return true;
  const std::string text(host);
  in_addr four{};
  if (inet_pton(AF_INET, text.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  return inet_pton(AF_INET6, text.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

Status CheckListen(std::string_view flag, std::string_view host_port, bool has_tls, bool insecure) {
  const std::string_view host = host_port.substr(0, host_port.rfind(':'));
  if (has_tls || insecure || IsLoopbackHost(host)) return OkStatus();
  return InvalidArgument(
      "{} {} is not an address of the loopback, and without TLS others on the network could read, "
      "change and send what passes there: give certificates with --tls-dir DIR (`troupe certs` "
      "makes them), or permit it with --insecure",
      flag, host_port);
}

}  // namespace troupe
