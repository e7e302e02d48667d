// troupe-coordinator: plans, places and tracks the jobs of one cluster.

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/detection_seconds.h"
#include "base/failpoint.h"
#include "base/file_system.h"
#include "base/flag_parser.h"
#include "base/keep_ended.h"
#include "base/log.h"
#include "base/log_rotation.h"
#include "base/program/descriptor_limit.h"
#include "base/program/program.h"
#include "base/security/grpc_log.h"
#include "base/security/insecure_reminder.h"
#include "base/security/security_flags.h"
#include "coordinator/kubernetes/kubernetes_options.h"
#include "coordinator/service/enrollment_service.h"
#include "coordinator/service/server.h"

namespace troupe {
namespace {

constexpr int kFailed = 1;
constexpr int kCannotListen = 3;

constexpr double kSecondsOfHour = 3600;
constexpr double kDefaultCertificateHours = 24;
constexpr double kLeastCertificateHours = 0.001;
constexpr double kMostCertificateHours = 90 * 24;

constexpr char kUsage[] = "troupe-coordinator --listen HOST:PORT --data-dir DIR [FLAG …]";
constexpr char kFooter[] =
    R"(Once it serves, it prints one line:
{"address":"HOST:PORT","metrics":"http://HOST:PORT/metrics","pid":N}
With --insecure the line also has "insecure":true, with --health-listen "health":"HOST:PORT", and
with --page-listen "page":"http://HOST:PORT/".

Exit codes: 0 stopped by SIGTERM or SIGINT, 1 failed (another coordinator has the data directory,
or the catalog is damaged or cannot be written), 2 wrong usage, 3 cannot listen on an address.)";

// Without TLS callers have no identity that could be limited.
struct UserLimitFlag {
  const char* name;
  const char* limited;
  int* limit;  // that of the server, by default the default
  std::optional<int> given = std::nullopt;
};

struct Flags {
  ServerOptions server;
  SecurityFlags security;
  std::optional<std::string> authority;
  std::optional<double> worker_certificate_hours;
  LogLimit log{.bytes = 0};
  std::string namespaces;  // empty: none
  KubernetesOptions kubernetes;
  UserLimitFlag user_limits[3] = {
      {"--most-user-jobs", "jobs of one identity that have not ended", &server.most_user_jobs},
      {"--most-user-streams", "watches and reads of logs of one identity at a time",
       &server.user_limits.streams},
      {"--most-user-plans", "plans that wait, and checks of data, of one identity",
       &server.user_limits.waiting_plans}};
  bool allow_failpoints = false;
};

void AddUserFlags(FlagParser& parser, Flags* flags) {
  parser.AddText({"--namespaces", "FILE",
                  "YAML or JSON file of namespaces with members, quotas and roots; read again when "
                  "it changes (default: none, everyone may use every job)"},
                 &flags->namespaces);
  for (UserLimitFlag& flag : flags->user_limits)
    parser.AddOptionalNumber(
        {flag.name, "N",
         fmt::format("{}; needs --tls-dir (default: {})", flag.limited, *flag.limit)},
        {1, 1'000'000}, &flag.given);
  parser.AddOptionalNumber({"--most-address-connections", "N",
                            "connections of one address at a time, except on the loopback "
                            "(default: a quarter of all)"},
                           {1, 1'000'000}, &flags->server.most_address_connections);
}

void AddFlags(FlagParser& parser, Flags* flags) {
  ServerOptions* const options = &flags->server;
  LogLimit* const log = &flags->log;
  parser.AddText({.name = "--listen",
                  .value = "HOST:PORT",
                  .help = "address of the API and of the workers' sessions; port 0 selects a free "
                          "one",
                  .required = true},
                 &options->listen);
  parser.AddText({.name = "--data-dir",
                  .value = "DIR",
                  .help = "directory of the catalog, which one coordinator at a time may use",
                  .required = true},
                 &options->data_directory);
  parser.AddParsed({"--checkpoint-root", "DIR",
                    "absolute path of a directory, the same on all hosts, in which jobs without a "
                    "job file (gRPC, or a mapping in Python) save that state no "
                    "checkpoint.folder (default: checkpoints in --data-dir)"},
                   [options](const std::string& directory) -> Status {
                     if (directory.empty()) return InvalidArgument("--checkpoint-root is empty");
                     options->checkpoint_root = directory;
                     return OkStatus();
                   });
  parser.AddText(
      {"--metrics-listen", "HOST:PORT",
       "address of /metrics: over HTTP on the loopback, elsewhere over HTTPS with the "
       "certificates of --tls-dir, for clients with a certificate; port 0 selects a free "
       "one (default: no metrics)"},
      &options->metrics_listen);
  parser.AddText(
      {"--health-listen", "HOST:PORT",
       "address of the pages /healthz and /readyz over HTTP, whose answer is ok or not ok, "
       "for a kubelet; port 0 selects a free one (default: no pages)"},
      &options->health_listen);
  parser.AddText(
      {"--page-listen", "HOST:PORT",
       "address of a web page that shows jobs and workers: with --tls-dir over HTTPS, for those "
       "who have a certificate or a token; port 0 selects a free one (default: no page)"},
      &options->page_listen);
  parser.AddNumber({"--detection-seconds", "SECONDS",
                    "time after which a silent worker is lost; all time limits of the cluster "
                    "derive from it"},
                   {kLeastDetectionSeconds, kMostDetectionSeconds}, &options->detection_seconds);
  parser.AddParsed(
      {"--keep-ended", "N|TIME|all",
       "ended jobs that are kept in the catalog: the newest N, or each for a time such as 36h (s, "
       "m, h or d); checkpoints of removed jobs are kept (default: all)"},
      [options](const std::string& value) -> Status {
        TROUPE_ASSIGN_OR_RETURN(options->keep_ended, ParseKeepEnded("--keep-ended", value));
        return OkStatus();
      });
  parser.AddNumber({"--log-bytes", "BYTES",
                    "size at which the log is rotated, if standard error is a file; 0: never"},
                   {0, kMostLogBytes}, &log->bytes);
  parser.AddNumber({"--log-files", "N", "rotated logs that are kept"}, {0, kMostLogFiles},
                   &log->files);
  parser.AddOptionalNumber(
      {"--blame-half-life-seconds", "SECONDS",
       "half-life of the weight of a fault on its host (default: 600 times --detection-seconds)"},
      {1, 1e7}, &options->blame_half_life_seconds);
  parser.AddSwitch({kAllowFailpointsFlag, "", kAllowFailpointsHelp}, &flags->allow_failpoints);
}

void AddEnrollmentFlags(FlagParser& parser, Flags* flags) {
  parser.AddParsed(
      {"--authority", "DIR",
       "directory of an authority (`troupe certs init`), with which the coordinator signs "
       "certificates of workers: new ones join with a token, and all renew theirs"},
      [flags](const std::string& directory) -> Status {
        if (directory.empty()) return InvalidArgument("--authority is empty");
        flags->authority = directory;
        return OkStatus();
      });
  parser.AddOptionalNumber(
      {"--worker-certificate-hours", "HOURS",
       fmt::format("life of the certificates that --authority signs (default: {})",
                   kDefaultCertificateHours)},
      {kLeastCertificateHours, kMostCertificateHours}, &flags->worker_certificate_hours);
}

void AddKubernetesFlags(FlagParser& parser, Flags* flags) {
  parser.AddSwitch({"--kubernetes-jobs", "",
                    "creates, stops and resumes jobs as the TroupeJobs of a namespace of "
                    "Kubernetes ask for (default: Kubernetes is not used)"},
                   &flags->kubernetes.jobs);
  KubernetesOptions* const options = &flags->kubernetes;
  parser.AddSwitch({"--kubernetes-pods", "",
                    "marks the pods that have the names of workers as busy or idle, so that a "
                    "smaller pool loses idle ones first (default: pods are left as they are)"},
                   &options->pods);
  parser.AddText({"--kubernetes-api", "URL",
                  "https://HOST:PORT of the API server, or http:// on the loopback (default: that "
                  "of the pod)"},
                 &options->url);
  parser.AddText({"--kubernetes-namespace", "NAMESPACE",
                  "namespace of the TroupeJobs and of the pods (default: that of the pod)"},
                 &options->space);
  parser.AddText({"--kubernetes-account", "DIR", "directory with token, ca.crt and namespace"},
                 &options->directory);
}

Status CheckKubernetesFlags(Flags* flags) {
  const KubernetesOptions& given = flags->kubernetes;
  if (given.jobs || given.pods) {
    TROUPE_ASSIGN_OR_RETURN(flags->server.kubernetes, CompleteKubernetesOptions(given));
    return OkStatus();
  }
  if (!given.url.empty() || !given.space.empty() || given.directory != kServiceAccountDirectory)
    return InvalidArgument(
        "--kubernetes-api, -namespace and -account require --kubernetes-jobs or --kubernetes-pods");
  return OkStatus();
}

// Reads the authority, and checks that it fits to the certificate of this coordinator.
Status CheckAuthorityFlag(Flags* flags) {
  if (!flags->authority) {
    if (!flags->worker_certificate_hours) return OkStatus();
    return InvalidArgument(
        "--worker-certificate-hours requires --authority: without it no certificate is signed");
  }
  ServerOptions& options = flags->server;
  if (!options.tls)
    return InvalidArgument("--authority requires --tls-dir: workers join over TLS only");
  const auto usable = CheckEnrollment(*flags->authority, *options.tls, WallSeconds(SystemClock()));
  if (!usable.ok()) return Annotate(usable.status(), "--authority");
  WarnIfOthersMaySign(*flags->authority);
  const double hours = flags->worker_certificate_hours.value_or(kDefaultCertificateHours);
  options.enrollment = {.authority = *flags->authority,
                        .certificate_seconds = std::lround(hours * kSecondsOfHour)};
  return OkStatus();
}

// Only an attempt shows whether directories can be made in `root`. A full one may be emptied.
Status CheckRootIsWritable(FileSystem& files, const std::string& root) {
  const std::string path = JoinPath(root, fmt::format(".troupe-coordinator-{}", getpid()));
  const Status made = files.MakeDirectory(path);
  if (made.ok()) files.RemoveDirectory(path).IgnoreError();
  if (made.ok() || made.code() == StatusCode::kAlreadyExists ||
      made.code() == StatusCode::kResourceExhausted)
    return OkStatus();
  return InvalidArgument("--checkpoint-root {} cannot be written: {}", root, Message(made));
}

// A root that is missing here is probably not mounted, or misspelt: the workers would create it on
// their own disks.
Status CheckRoot(const std::string& root) {
  if (root.empty()) return OkStatus();
  if (root.front() != '/')
    return InvalidArgument("--checkpoint-root is \"{}\", which is not an absolute path", root);
  PosixFileSystem files;
  const StatusOr<FileInfo> info = files.Stat(root, SymbolicLinks::kFollow);
  if (!info.ok())
    return InvalidArgument("--checkpoint-root {} cannot be used: {}", root, Message(info.status()));
  if (info->kind != FileKind::kDirectory)
    return InvalidArgument("--checkpoint-root {} is not a directory", root);
  return CheckRootIsWritable(files, root);
}

// Returns a message that has a line for each violation as the one line of a program that ends.
std::string OnOneLine(std::string text) {
  size_t at = 0;
  while ((at = text.find('\n', at)) != std::string::npos) text.replace(at, 1, "; ");
  return text;
}

Status CheckDataDirectory(const std::string& path) {
  if (path.empty()) return InvalidArgument("--data-dir is empty");
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  if (error) return InvalidArgument("--data-dir {}: {}", path, error.message());
  // The working directory is a part of the paths of checkpoints.
  TROUPE_RETURN_IF_ERROR(CheckText("--data-dir", absolute.lexically_normal().string()));
  PosixFileSystem files;
  if (const auto info = files.Stat(path, SymbolicLinks::kFollow);
      info.ok() && info->kind != FileKind::kDirectory)
    return InvalidArgument("--data-dir {} is not a directory", path);
  return OkStatus();
}

Status CheckUserLimits(Flags* flags) {
  for (const UserLimitFlag& flag : flags->user_limits) {
    if (!flag.given) continue;
    if (!flags->server.tls)
      return InvalidArgument("{} requires --tls-dir: callers have no identity without TLS",
                             flag.name);
    *flag.limit = *flag.given;
  }
  return OkStatus();
}

Status CheckFlags(Flags* flags) {
  ServerOptions& options = flags->server;
  TROUPE_RETURN_IF_ERROR(CheckDataDirectory(options.data_directory));
  TROUPE_RETURN_IF_ERROR(CheckRoot(options.checkpoint_root));
  TROUPE_RETURN_IF_ERROR(CheckHostPort("--listen", options.listen, 0));
  if (!options.metrics_listen.empty())
    TROUPE_RETURN_IF_ERROR(CheckHostPort("--metrics-listen", options.metrics_listen, 0));
  if (!options.health_listen.empty())
    TROUPE_RETURN_IF_ERROR(CheckHostPort("--health-listen", options.health_listen, 0));
  if (!options.page_listen.empty())
    TROUPE_RETURN_IF_ERROR(CheckHostPort("--page-listen", options.page_listen, 0));
  const FlagAddress addresses[] = {{"--listen", options.listen},
                                   {"--metrics-listen", options.metrics_listen},
                                   {"--page-listen", options.page_listen}};
  TROUPE_ASSIGN_OR_RETURN(options.tls, CheckSecurityFlags(flags->security, Role::kCoordinator,
                                                          addresses, WallSeconds(SystemClock())));
  options.insecure = flags->security.insecure;
  TROUPE_RETURN_IF_ERROR(CheckUserLimits(flags));
  TROUPE_RETURN_IF_ERROR(CheckAuthorityFlag(flags));
  TROUPE_RETURN_IF_ERROR(CheckKubernetesFlags(flags));
  if (!flags->namespaces.empty()) {
    StatusOr<NamespacesFile> file = ReadNamespacesFile(flags->namespaces);
    if (!file.ok()) return InvalidArgument("{}", OnOneLine(std::string(Message(file.status()))));
    options.namespaces = *std::move(file);
  }
  return ArmFailpointsFromEnvironment(flags->allow_failpoints);
}

// Returns the first of `signals` that arrives.
int WaitForSignal(const sigset_t& signals, bool insecure) {
  InsecureReminder reminder("coordinator", insecure);
  const timespec interval{.tv_sec = 60, .tv_nsec = 0};
  while (true) {
    reminder.RemindAt(SystemClock().Now());
    const int signal_number = sigtimedwait(&signals, nullptr, &interval);
    if (signal_number > 0) return signal_number;
  }
}

int Main(int argc, char** argv) {
  Flags flags;
  flags.server.listen.clear();
  FlagParser parser({.name = "troupe-coordinator",
                     .usage = kUsage,
                     .summary = "Plans, places and tracks the jobs of one cluster.",
                     .footer = kFooter});
  AddFlags(parser, &flags);
  AddUserFlags(parser, &flags);
  AddSecurityFlags(parser, Role::kCoordinator, &flags.security);
  AddEnrollmentFlags(parser, &flags);
  AddKubernetesFlags(parser, &flags);
  const std::optional<int> ended =
      parser.ParseMain(argc, argv, [&flags] { return CheckFlags(&flags); });
  if (ended) return *ended;
  ServerOptions& options = flags.server;
  LimitLog(flags.log);
  options.descriptor_limit = RaiseDescriptorLimit();
  SetLogContext("coordinator");
  LogGrpcRecords();
  // Every thread inherits the mask; only WaitForSignal receives these signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  // Durable state is safe, and a restart recovers it.
  options.on_failure = [](const Status&) { std::_Exit(kFailed); };
  StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
  if (!server.ok()) {
    PrintMessage("troupe-coordinator: {}\n", Message(server.status()));
    return server.status().code() == StatusCode::kUnavailable ? kCannotListen : kFailed;
  }
  nlohmann::ordered_json ready = {
      {"address", (*server)->address()}, {"metrics", (*server)->metrics_url()}, {"pid", getpid()}};
  if ((*server)->health_port() != 0) {
    const std::string& listen = options.health_listen;
    ready["health"] =
        fmt::format("{}:{}", listen.substr(0, listen.rfind(':')), (*server)->health_port());
  }
  if (const std::string page = (*server)->page_url(); !page.empty()) ready["page"] = page;
  if (options.insecure) ready["insecure"] = true;
  PrintOutput("{}\n", ready.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  std::fflush(stdout);
  LogInfo("coordinator", "listens on {}", (*server)->address());
  LogInfo("coordinator", "stops after signal {}", WaitForSignal(signals, options.insecure));
  (*server)->Stop();
  // Everything is on disk.
  std::_Exit(0);
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  return troupe::RunProgram("troupe-coordinator", [&] { return troupe::Main(argc, argv); });
}
