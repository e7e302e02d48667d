// The commands certs init and certs issue: a small authority for clusters without one.
#include <fmt/format.h>

#include <ctime>

#include "base/file_system.h"
#include "base/security/authority_files.h"
#include "base/security/certificate.h"
#include "cli/commands.h"
#include "cli/json_text.h"

namespace troupe {
namespace {

constexpr int kMostDays = 3650;

constexpr TextFlag kClusterFlag{"--cluster", "NAME",
                                "the cluster's name in all identities (default: default)"};
constexpr TextFlag kHolderRoleFlag{
    "--role", "ROLE", "what the holder may do: viewer, submitter, operator, worker or coordinator",
    true};
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

StatusOr<ExitCode> InitAuthority(const CommandLine& line) {
  const std::string& directory = line.positional()[0];
  const std::string cluster = line.Get(kClusterFlag).value_or("default");
  TROUPE_RETURN_IF_ERROR(WriteNewAuthority(directory, cluster, std::time(nullptr)));
  const std::string key = JoinPath(directory, "authority.key");
  if (line.wants_json()) {
    fmt::print("{}\n", Dump({{"cluster", cluster},
                             {"directory", directory},
                             {"ca", JoinPath(directory, "ca.pem")},
                             {"key", key}}));
  } else {
    fmt::print("authority of the cluster {} in {}\nkeep {} secret: its owner can be anybody\n",
               cluster, directory, key);
  }
  return ExitCode::kDone;
}

StatusOr<ExitCode> IssueCertificate(const CommandLine& line) {
  IssueRequest request{.name = *line.Get(kHolderNameFlag),
                       .days = line.Get(kDaysFlag).value_or(90),
                       .hosts = line.Get(kHostFlag)};
  const auto role = ParseRole(*line.Get(kHolderRoleFlag));
  if (!role.ok()) return Annotate(role.status(), kHolderRoleFlag.name);
  request.role = *role;
  const std::string& output = *line.Get(kTlsOutputFlag);
  if (output.empty()) return InvalidArgument("{} is empty", kTlsOutputFlag.name);
  TROUPE_ASSIGN_OR_RETURN(
      const CertificateFacts facts,
      IssueTlsDirectory(line.positional()[0], request, output, std::time(nullptr)));
  if (line.wants_json()) {
    fmt::print("{}\n", Dump({{"identity", ToUri(facts.identity)},
                             {"serial", facts.serial},
                             {"not_before", facts.not_before},
                             {"not_after", facts.not_after},
                             {"directory", output}}));
  } else {
    fmt::print("{} in {}, valid until {}\n", ToUri(facts.identity), output,
               UtcText(facts.not_after));
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
       .flags = {&kHolderRoleFlag, &kHolderNameFlag, &kTlsOutputFlag, &kDaysFlag, &kHostFlag},
       .cluster = ClusterUse::kNone,
       .run = IssueCertificate},
  };
}

}  // namespace troupe
