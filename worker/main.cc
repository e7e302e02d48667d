// troupe-worker: owns the devices of one host and runs the ranks that the coordinator places there.

#include <pthread.h>
#include <signal.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file_system.h"
#include "base/log.h"
#include "worker/daemon.h"
#include "worker/device_probe.h"
#include "worker/health/nvml.h"
#include "worker/incarnation.h"
#include "worker/measure_profile.h"
#include "worker/rank/cuda_backend.h"
#include "worker/rank/rank_process.h"

namespace troupe {
namespace {

constexpr char kUsage[] =
    R"(troupe-worker --coordinator HOST:PORT --name NAME --devices cpu:N|cuda:N [--island NAME] [--data-dir DIR]
              [--peak-dir DIR] [--log-dir DIR] [--metrics-listen HOST:PORT] [--nvml LIBRARY]
troupe-worker --measure-peak --data-dir DIR [--devices cpu:N]
troupe-worker --list-failpoints

  --coordinator     address of the coordinator; dialled again for as long as it takes
  --name            one worker a name: [A-Za-z0-9._-]
  --devices         cpu:N: N devices that share this host's cores; cuda:N: its first N GPUs
  --island          workers joined by the fastest fabric have the same; the host where it is not given
  --data-dir        where --measure-peak leaves and a worker finds the peak of this host, and where a worker keeps the
                    number of its life; default: the current directory
  --peak-dir        where else to look for that peak: workers of one host may share a measurement
  --log-dir         logs of ranks, JOB/rank-R.NAME.log; default: DIR/logs of --data-dir
  --metrics-listen  address of /metrics over HTTP; none unless given; port 0 takes a free one
  --nvml            NVIDIA's management library, through which GPUs are watched; default: libnvidia-ml.so.1
  --measure-peak    times matrix products on all cores, writes the result into the data directory, and into profile.yaml
                    there what one of N devices at work does (layers, memory and links, for `troupe plan --profile`), and
                    ends
  --list-failpoints prints the points at which TROUPE_FAILPOINTS may strike, one a line, and ends

Exit codes: 0 stopped by SIGTERM or SIGINT, 1 failed or refused by the coordinator, 2 usage.
)";

constexpr int kFailed = 1;
constexpr int kUsageError = 2;
constexpr int kDevicesMax = 64;

struct Flags {
  std::string coordinator;
  std::string name;
  std::string device_kind = "cpu";
  int devices = 0;
  std::string island;
  std::string data_directory = ".";
  std::string peak_directory;
  std::string log_directory;
  std::string metrics_listen;
  std::string nvml = kNvmlLibrary;
  bool measure_peak = false;
};

// Into `flags`.
Status ParseDevices(std::string_view text, Flags* flags) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if (colon != std::string_view::npos && (kind == "cpu" || kind == "cuda")) {
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data() + colon + 1, last, flags->devices);
    if (error == std::errc() && end == last && flags->devices >= 1 && flags->devices <= kDevicesMax) {
      flags->device_kind = kind;
      return OkStatus();
    }
  }
  return InvalidArgument("--devices is \"{}\", must be cpu:N or cuda:N with N from 1 to {}", text,
                         kDevicesMax);
}

StatusOr<Flags> ParseFlags(const std::vector<std::string_view>& arguments) {
  Flags flags;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--measure-peak") {
      flags.measure_peak = true;
      continue;
    }
    const size_t equals = arguments[i].find('=');
    const std::string_view flag = arguments[i].substr(0, equals);
    std::string value;
    if (equals != std::string_view::npos) {
      value = arguments[i].substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      return InvalidArgument("{} has no value", flag);
    }
    if (flag == "--coordinator") {
      flags.coordinator = value;
    } else if (flag == "--name") {
      flags.name = value;
    } else if (flag == "--devices") {
      TROUPE_RETURN_IF_ERROR(ParseDevices(value, &flags));
    } else if (flag == "--island") {
      flags.island = value;
    } else if (flag == "--data-dir") {
      flags.data_directory = value;
    } else if (flag == "--peak-dir") {
      flags.peak_directory = value;
    } else if (flag == "--log-dir") {
      flags.log_directory = value;
    } else if (flag == "--metrics-listen") {
      flags.metrics_listen = value;
    } else if (flag == "--nvml") {
      flags.nvml = value;
    } else {
      return InvalidArgument("unknown flag {}", flag);
    }
  }
  if (flags.log_directory.empty()) flags.log_directory = JoinPath(flags.data_directory, "logs");
  if (flags.measure_peak) return flags;
  if (flags.coordinator.empty()) return InvalidArgument("--coordinator is required");
  if (flags.name.empty()) return InvalidArgument("--name is required");
  if (flags.devices == 0) return InvalidArgument("--devices is required");
  return flags;
}

// Absolute, so that a rank's working directory does not matter.
std::string Absolute(const std::string& path) {
  if (path.starts_with('/')) return path;
  char* const here = get_current_dir_name();
  const std::string absolute = JoinPath(here == nullptr ? "/" : here, path);
  std::free(here);
  return absolute;
}

StatusOr<session::Config> MakeConfig(const Flags& flags) {
  PosixFileSystem files;
  session::Config config;
  config.log_directory = Absolute(flags.log_directory);
  const bool cuda = flags.device_kind == "cuda";
  const HostPeak peak = FindPeak(files, {flags.data_directory, flags.peak_directory});
  TROUPE_ASSIGN_OR_RETURN(const std::vector<v1::Device> devices,
                          cuda ? ProbeCudaDevices(flags.devices)
                               : ProbeCpuDevices(flags.devices, peak));
  v1::Hello& hello = config.identity;
  hello.set_protocol_version(session::kProtocolVersion);
  hello.set_name(flags.name);
  TROUPE_ASSIGN_OR_RETURN(
      const uint64_t incarnation,
      NextIncarnation(files, Absolute(flags.data_directory), flags.name,
                      static_cast<uint64_t>(SystemClock().WallNanoseconds())));
  hello.set_incarnation(incarnation);
  // What was measured here was measured on processors.
  const StatusOr<v1::DeviceProfile> profile =
      cuda ? NotFound("no profile of GPUs was measured: estimates of time are not given")
           : FindProfile(files, {flags.data_directory, flags.peak_directory}, flags.devices);
  if (!profile.ok()) LogInfo("worker", "{}", Message(profile.status()));
  for (const v1::Device& device : devices) {
    v1::Device& announced = *hello.add_devices();
    announced = device;
    if (profile.ok()) *announced.mutable_profile() = *profile;
  }
  hello.set_island(flags.island);
  utsname host{};
  uname(&host);
  hello.set_host(host.nodename);
  hello.set_pid(getpid());
  return config;
}

int MeasureAndWrite(const Flags& flags) {
  PosixFileSystem files;
  const StatusOr<HostPeak> peak = MeasurePeak();
  const auto write = [&]() -> Status {
    TROUPE_RETURN_IF_ERROR(peak.status());
    TROUPE_RETURN_IF_ERROR(WriteMeasuredPeak(files, flags.data_directory, *peak));
    TROUPE_ASSIGN_OR_RETURN(const v1::DeviceProfile profile,
                            MeasureProfile(*peak, std::max(1, flags.devices)));
    return WriteFileDurably(files, JoinPath(flags.data_directory, kProfileFile),
                            AsBytes(ToYaml(profile)));
  };
  const Status written = write();
  if (!written.ok()) {
    fmt::print(stderr, "troupe-worker: {}\n", Message(written));
    return kFailed;
  }
  fmt::print("{{\"float32\":{:.6e},\"bfloat16\":{:.6e}}}\n", peak->float32, peak->bfloat16);
  return 0;
}

int Main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  if (arguments.size() == 1 && arguments[0] == "--help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (arguments.size() == 1 && arguments[0] == "--list-failpoints") {
    for (const FailpointName& point : AllFailpoints()) fmt::print("{}\n", point.name);
    return 0;
  }
  if (const Status armed = ArmFailpointsFromEnvironment(); !armed.ok()) {
    fmt::print(stderr, "troupe-worker: {}\n", Message(armed));
    return kUsageError;
  }
  if (arguments.size() == 2 && arguments[0] == "--rank-process") {
    const StatusOr<RankDescriptors> descriptors = ParseRankDescriptors(arguments[1]);
    if (!descriptors.ok()) {
      fmt::print(stderr, "troupe-worker: {}\n", Message(descriptors.status()));
      return kUsageError;
    }
    return RunRankProcess(*descriptors);
  }
  const StatusOr<Flags> flags = ParseFlags(arguments);
  if (!flags.ok()) {
    fmt::print(stderr, "troupe-worker: {}\n{}", Message(flags.status()), kUsage);
    return kUsageError;
  }
  if (flags->measure_peak) return MeasureAndWrite(*flags);
  SetLogContext(fmt::format("worker={}", flags->name));
  // Every thread inherits the mask; only the daemon's main loop sees these.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  StatusOr<session::Config> config = MakeConfig(*flags);
  const StatusOr<int> code = config.ok() ? RunDaemon({.coordinator = flags->coordinator,
                                                      .metrics_listen = flags->metrics_listen,
                                                      .session = *std::move(config),
                                                      .executable = "/proc/self/exe",
                                                      .nvml = flags->nvml})
                                         : config.status();
  if (!code.ok()) {
    fmt::print(stderr, "troupe-worker: {}\n", Message(code.status()));
    return kFailed;
  }
  return *code;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
