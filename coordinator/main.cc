// troupe-coordinator: plans, places and tracks the jobs of one cluster.

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/descriptor_limit.h"
#include "base/detection_seconds.h"
#include "base/failpoint.h"
#include "base/keep_ended.h"
#include "base/log.h"
#include "base/log_rotation.h"
#include "coordinator/server.h"

namespace troupe {
namespace {

constexpr char kUsage[] =
    R"(troupe-coordinator --listen HOST:PORT --data-dir DIR [--metrics-listen HOST:PORT] [--detection-seconds 3]
                   [--keep-ended N|TIME|all] [--log-bytes N] [--log-files N]
                   [--blame-half-life-seconds S]

  --listen             address of the API and of the workers' sessions; port 0 takes a free one
  --data-dir           the catalog; one coordinator at a time
  --metrics-listen     address of /metrics over HTTP; none unless given
  --detection-seconds  every time limit of the cluster derives from it
  --keep-ended         so many of the jobs that have ended stay in the catalog, the newest ("1000"), or each for so long
                       ("36h"; s, m, h or d); others go, but for their checkpoints; default: all
  --log-bytes          a log file of so many bytes is moved aside (where standard error is a file); 0, the default: never
  --log-files          of those that were moved aside so many are kept; default 4
  --blame-half-life-seconds
                       what a fault weighs on its host halves in so long; default: 600 times --detection-seconds

Once it serves, it prints one line: {"address":"HOST:PORT","metrics":"http://HOST:PORT/metrics","pid":N}
Exit codes: 0 stopped by SIGTERM or SIGINT, 1 failed (another coordinator has the data directory, the catalog is
damaged or cannot be written), 2 usage, 3 an address cannot be listened on.
)";

constexpr int kFailed = 1;
constexpr int kUsageError = 2;
constexpr int kCannotListen = 3;

StatusOr<double> SecondsOf(std::string_view flag, const std::string& value, double least,
                           double most) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (error != std::errc() || end != value.data() + value.size() ||
      !(seconds >= least && seconds <= most)) {
    return InvalidArgument("{} is \"{}\", must be a number from {} to {}", flag, value, least, most);
  }
  return seconds;
}

StatusOr<ServerOptions> ParseFlags(int argc, char** argv, LogLimit* log) {
  ServerOptions options;
  options.listen.clear();
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string_view flag = argument.substr(0, equals);
    std::string value;
    if (equals != std::string_view::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < argc) {
      value = argv[++i];
    } else {
      return InvalidArgument("{} has no value", flag);
    }
    if (flag == "--listen") {
      options.listen = value;
    } else if (flag == "--data-dir") {
      options.data_directory = value;
    } else if (flag == "--metrics-listen") {
      options.metrics_listen = value;
    } else if (flag == "--detection-seconds") {
      TROUPE_ASSIGN_OR_RETURN(
          options.detection_seconds,
          SecondsOf(flag, value, kLeastDetectionSeconds, kMostDetectionSeconds));
    } else if (flag == "--blame-half-life-seconds") {
      TROUPE_ASSIGN_OR_RETURN(options.blame_half_life_seconds, SecondsOf(flag, value, 1, 1e7));
    } else if (flag == "--keep-ended") {
      TROUPE_ASSIGN_OR_RETURN(options.keep_ended, ParseKeepEnded(flag, value));
    } else if (flag == "--log-bytes") {
      TROUPE_ASSIGN_OR_RETURN(log->bytes, ParseLogNumber(flag, value, int64_t{1} << 40));
    } else if (flag == "--log-files") {
      TROUPE_ASSIGN_OR_RETURN(const int64_t files, ParseLogNumber(flag, value, kMostLogFiles));
      log->files = static_cast<int>(files);
    } else {
      return InvalidArgument("unknown flag {}", flag);
    }
  }
  if (options.listen.empty()) return InvalidArgument("--listen is required");
  if (options.data_directory.empty()) return InvalidArgument("--data-dir is required");
  return options;
}

int Main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--help") {
      std::fputs(kUsage, stdout);
      return 0;
    }
  }
  LogLimit log{.bytes = 0};
  StatusOr<ServerOptions> options = ParseFlags(argc, argv, &log);
  const Status armed = ArmFailpointsFromEnvironment();
  if (!options.ok() || !armed.ok()) {
    const Status& wrong = options.ok() ? armed : options.status();
    fmt::print(stderr, "troupe-coordinator: {}\n{}", Message(wrong), kUsage);
    return kUsageError;
  }
  LimitLog(log);
  options->descriptor_limit = RaiseDescriptorLimit();
  SetLogContext("coordinator");
  // Every thread inherits the mask; only sigwait below receives these signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  // Durable state is safe, and a restart recovers it.
  options->on_failure = [](const Status&) { std::_Exit(kFailed); };
  StatusOr<std::unique_ptr<Server>> server = Server::Start(*options);
  if (!server.ok()) {
    fmt::print(stderr, "troupe-coordinator: {}\n", Message(server.status()));
    return server.status().code() == StatusCode::kUnavailable ? kCannotListen : kFailed;
  }
  const size_t metrics_colon = options->metrics_listen.rfind(':');
  const std::string metrics =
      (*server)->metrics_port() == 0
          ? std::string()
          : fmt::format("http://{}:{}/metrics", options->metrics_listen.substr(0, metrics_colon),
                        (*server)->metrics_port());
  fmt::print("{{\"address\":\"{}\",\"metrics\":\"{}\",\"pid\":{}}}\n", (*server)->address(),
             metrics, getpid());
  std::fflush(stdout);
  LogInfo("coordinator", "serves on {}", (*server)->address());
  int signal_number = 0;
  sigwait(&signals, &signal_number);
  LogInfo("coordinator", "stops: signal {}", signal_number);
  (*server)->Stop();
  // Everything is on disk. The metrics' HTTP server would take two seconds to stop.
  std::_Exit(0);
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
