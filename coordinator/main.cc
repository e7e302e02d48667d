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

#include "base/failpoint.h"
#include "base/log.h"
#include "coordinator/server.h"

namespace troupe {
namespace {

constexpr char kUsage[] =
    R"(troupe-coordinator --listen HOST:PORT --data-dir DIR [--metrics-listen HOST:PORT] [--detection-seconds 3]

  --listen             address of the API and of the workers' sessions; port 0 takes a free one
  --data-dir           the catalog; one coordinator at a time
  --metrics-listen     address of /metrics over HTTP; none unless given
  --detection-seconds  every time limit of the cluster derives from it

Once it serves, it prints one line: {"address":"HOST:PORT","metrics":"http://HOST:PORT/metrics","pid":N}
Exit codes: 0 stopped by SIGTERM or SIGINT, 1 failed (another coordinator has the data directory, the catalog is
damaged or cannot be written), 2 usage, 3 an address cannot be listened on.
)";

constexpr int kFailed = 1;
constexpr int kUsageError = 2;
constexpr int kCannotListen = 3;

StatusOr<ServerOptions> ParseFlags(int argc, char** argv) {
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
      double seconds = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
      if (error != std::errc() || end != value.data() + value.size() ||
          !(seconds >= 0.1 && seconds <= 3600)) {
        return InvalidArgument("--detection-seconds is \"{}\", must be a number from 0.1 to 3600",
                               value);
      }
      options.detection_seconds = seconds;
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
  StatusOr<ServerOptions> options = ParseFlags(argc, argv);
  const Status armed = ArmFailpointsFromEnvironment();
  if (!options.ok() || !armed.ok()) {
    const Status& wrong = options.ok() ? armed : options.status();
    fmt::print(stderr, "troupe-coordinator: {}\n{}", Message(wrong), kUsage);
    return kUsageError;
  }
  SetLogContext("coordinator");
  // Every thread inherits the mask; only sigwait below sees these.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  // What is durable is; a restart recovers it.
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
  // Everything is on the disk. The HTTP server of the metrics would take two seconds to end.
  std::_Exit(0);
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
