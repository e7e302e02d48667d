// The commands certs init and certs issue, a small authority for clusters without one, and certs
// revoke and certs revoked.
#include <unistd.h>

#include <ctime>

#include "base/file_system.h"
#include "base/program/program.h"
#include "base/security/authority_files.h"
#include "base/security/certificate.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/issued_certificate.h"
#include "cli/output/access_table.h"
#include "cli/output/text_style.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

constexpr int kMostDays = 3650;

constexpr TextFlag kClusterFlag{"--cluster", "NAME",
                                "the cluster's name in all identities (default: default)"};
constexpr TextFlag kHolderRoleFlag{
    "--role", "ROLE", "what the holder may do: viewer, submitter, operator, worker or coordinator",
    true, "viewer submitter operator worker coordinator"};
constexpr TextFlag kHolderNameFlag{"--name", "NAME", "who it is; a worker's --name", true};
constexpr TextFlag kTlsOutputFlag{
    "--output", "DIR", "the TLS directory: new, or with an older certificate of the same identity",
    true};
constexpr NumberFlag<int> kDaysFlag{
    {"--days", "DAYS", "days until the certificate expires (default: 90)"}, {1, kMostDays}};
constexpr RepeatedFlag kHostFlag{
    "--host", "HOST",
    "a host name or address of a coordinator or a worker, for clients that compare it, such as "
    "Prometheus; the programs of Troupe compare the identity instead"};

constexpr SwitchFlag kFromNowFlag{
    "--valid-from-now", "",
    "do not date the certificate back by five minutes: needed after `troupe certs revoke "
    "--identity`"};

constexpr TextFlag kSerialFlag{"--serial", "HEX", "serial number of one certificate"};
constexpr TextFlag kIdentityFlag{
    "--identity", "URI",
    "spiffe://CLUSTER/ROLE/NAME: all certificates of it that are valid from now or before"};

StatusOr<ExitCode> InitAuthority(const CommandLine& line) {
  const std::string& directory = line.positional()[0];
  const std::string cluster = line.Get(kClusterFlag).value_or("default");
  TROUPE_RETURN_IF_ERROR(WriteNewAuthority(directory, cluster, std::time(nullptr)));
  const std::string key = JoinPath(directory, "authority.key");
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump({{"cluster", cluster},
                              {"directory", directory},
                              {"ca", JoinPath(directory, "ca.pem")},
                              {"key", key}}));
  } else {
    PrintOutput("authority of the cluster {} in {}\nkeep {} secret: its owner can be anybody\n",
                cluster, directory, key);
  }
  return ExitCode::kDone;
}

StatusOr<ExitCode> IssueCertificate(const CommandLine& line) {
  IssueRequest request{.name = *line.Get(kHolderNameFlag),
                       .days = line.Get(kDaysFlag).value_or(90),
                       .hosts = line.Get(kHostFlag),
                       .from_now = line.Get(kFromNowFlag)};
  const auto role = ParseRole(*line.Get(kHolderRoleFlag));
  if (!role.ok()) return Annotate(role.status(), kHolderRoleFlag.name);
  request.role = *role;
  const std::string& output = *line.Get(kTlsOutputFlag);
  TROUPE_ASSIGN_OR_RETURN(
      const CertificateFacts facts,
      IssueTlsDirectory(line.positional()[0], request, output, std::time(nullptr)));
  PrintIssued(line, facts, output);
  return ExitCode::kDone;
}

Json RevocationToJson(const v1::Revocation& revocation) {
  const bool has_serial = revocation.which_case() == v1::Revocation::kSerial;
  return {{has_serial ? "serial" : "identity",
           has_serial ? revocation.serial() : revocation.identity()},
          {"revoked", revocation.revoked()},
          {"revoked_by", revocation.revoked_by()}};
}

StatusOr<ExitCode> RevokeCertificate(const CommandLine& line) {
  const auto& serial = line.Get(kSerialFlag);
  const auto& identity = line.Get(kIdentityFlag);
  if (serial.has_value() == identity.has_value())
    return InvalidArgument("give either {} or {}", kSerialFlag.name, kIdentityFlag.name);
  v1::RevokeCertificateRequest request;
  if (serial) request.set_serial(*serial);
  if (identity) request.set_identity(*identity);
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(
      const v1::RevokeCertificateResponse revoked,
      client.Call<v1::RevokeCertificateResponse>(
          Client::Repeat::kSafe, Client::kCallLimit, [&](auto* context, auto* response) {
            return client.access().RevokeCertificate(context, request, response);
          }));
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump(RevocationToJson(revoked.revocation())));
  } else {
    WriteOutput(RevocationTableText({revoked.revocation()}, TextStyleOf(STDOUT_FILENO)));
  }
  return ExitCode::kDone;
}

StatusOr<ExitCode> ListRevoked(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(
      const v1::ListRevocationsResponse listed,
      client.Call<v1::ListRevocationsResponse>(
          Client::Repeat::kSafe, Client::kCallLimit, [&](auto* context, auto* response) {
            return client.access().ListRevocations(context, {}, response);
          }));
  if (line.wants_json()) {
    Json revocations = Json::array();
    for (const auto& revocation : listed.revocations())
      revocations.push_back(RevocationToJson(revocation));
    PrintOutput("{}\n", Dump({{"revocations", std::move(revocations)}}));
  } else if (listed.revocations().empty()) {
    PrintMessage("no certificate is revoked\n");
  } else {
    WriteOutput(RevocationTableText({listed.revocations().begin(), listed.revocations().end()},
                                    TextStyleOf(STDOUT_FILENO)));
  }
  return ExitCode::kDone;
}

}  // namespace

std::vector<Command> CertsCommands() {
  return {
      {.name = "certs init",
       .positionals = "DIR",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary = "Makes an authority for the certificates of a cluster in a new directory. Needs "
                  "no cluster.",
       .flags = {&kClusterFlag},
       .cluster = ClusterUse::kNone,
       .run = InitAuthority},
      {.name = "certs issue",
       .positionals = "DIR",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary = "Issues or renews a certificate of the authority in DIR: the directory for "
                  "--tls-dir. Needs no cluster.",
       .flags = {&kHolderRoleFlag, &kHolderNameFlag, &kTlsOutputFlag, &kDaysFlag, &kHostFlag,
                 &kFromNowFlag},
       .cluster = ClusterUse::kNone,
       .run = IssueCertificate},
      {.name = "certs revoke",
       .summary = "Has the coordinator refuse a certificate, or all of an identity, and end its "
                  "sessions and watches. Only operators may.",
       .flags = {&kSerialFlag, &kIdentityFlag},
       .run = RevokeCertificate},
      {.name = "certs revoked",
       .summary = "Lists the certificates that the coordinator refuses. Only operators may.",
       .run = ListRevoked},
  };
}

}  // namespace troupe
