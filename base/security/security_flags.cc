#include "base/security/security_flags.h"

#include "base/security/listen_policy.h"

namespace troupe {

void AddSecurityFlags(FlagParser& parser, Role role, SecurityFlags* flags) {
  parser.AddParsed(
      {"--tls-dir", "DIR",
       fmt::format("directory with ca.pem, cert.pem and key.pem of a {} (`troupe certs issue`): "
                   "connections use TLS, and both sides need a certificate; the files are read "
                   "again when they change",
                   RoleName(role))},
      [flags](const std::string& directory) -> Status {
        if (directory.empty()) return InvalidArgument("--tls-dir is empty");
        flags->tls_directory = directory;
        return OkStatus();
      });
  parser.AddSwitch({"--insecure", "",
                    "permits addresses off the loopback without --tls-dir; whoever reaches the "
                    "coordinator then has every role"},
                   &flags->insecure);
}

StatusOr<std::optional<TlsFiles>> CheckSecurityFlags(const SecurityFlags& flags, Role role,
                                                     std::span<const FlagAddress> addresses,
                                                     int64_t now_seconds) {
  const bool has_tls = flags.tls_directory.has_value();
  if (has_tls && flags.insecure)
    return InvalidArgument("--tls-dir and --insecure exclude each other");
  for (const FlagAddress& address : addresses) {
    if (address.host_port.empty()) continue;
    TROUPE_RETURN_IF_ERROR(CheckListen(address.flag, address.host_port, has_tls, flags.insecure));
  }
  if (!has_tls) return std::optional<TlsFiles>();
  auto files = CheckTlsDirectory(*flags.tls_directory, now_seconds);
  if (!files.ok()) return Annotate(files.status(), "--tls-dir");
  if (files->identity.role != role) {
    return InvalidArgument("--tls-dir: {} is the certificate of {}, not of a {}",
                           files->certificate, ToUri(files->identity), RoleName(role));
  }
  return std::optional<TlsFiles>(*std::move(files));
}

}  // namespace troupe
