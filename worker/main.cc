// troupe-worker: owns the devices of one host and runs the ranks that the coordinator places there.

#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/descriptor_limit.h"
#include "base/failpoint.h"
#include "base/file_system.h"
#include "base/log.h"
#include "base/log_rotation.h"
#include "checkpoint/rank_image.h"
#include "kernels/burn_in.h"
#include "worker/core_table.h"
#include "worker/core_topology.h"
#include "worker/daemon.h"
#include "worker/device_probe.h"
#include "worker/health/nvml.h"
#include "worker/host_network.h"
#include "worker/incarnation.h"
#include "worker/measure_profile.h"
#include "worker/rank/affinity.h"
#include "worker/rank/cuda_backend.h"
#include "worker/rank/rank_backend.h"
#include "worker/rank/rank_process.h"

namespace troupe {
namespace {

constexpr char kUsage[] =
    R"(troupe-worker --coordinator HOST:PORT --name NAME --devices cpu:N|cuda:N [--island NAME] [--host ADDRESS]
              [--data-dir DIR] [--peak-dir DIR] [--log-dir DIR] [--metrics-listen HOST:PORT] [--core-dir DIR]
              [--nvml LIBRARY] [--log-bytes N] [--log-files N]
troupe-worker --measure-peak --data-dir DIR [--devices cpu:N|cuda:N]
troupe-worker --burn-in SECONDS --devices cpu:N|cuda:N
troupe-worker --list-failpoints

  --coordinator     address of the coordinator; dialled again for as long as it takes
  --name            one worker a name: [A-Za-z0-9._-]
  --devices         cpu:N: N devices that share this host's cores; cuda:N: its first N GPUs
  --island          workers joined by the fastest fabric have the same; the host where it is not given
  --host            this machine's address on which its ranks listen for their peers (UCX and NCCL); UCX_NET_DEVICES and
                    NCCL_SOCKET_IFNAME, where they are set, count instead; default: every interface
  --data-dir        where --measure-peak leaves and a worker finds the peak of this host, and where a worker keeps the
                    number of its life, and ranks their states (DIR/images) where a job's last checkpoint cannot be
                    written; default: the current directory
  --peak-dir        where else to look for that peak: workers of one host may share a measurement
  --log-dir         logs of ranks, JOB/rank-R.NAME.log; default: DIR/logs of --data-dir
  --log-bytes       a log of the daemon or of a rank that has so many bytes is moved aside (LOG.1, LOG.2 …); 0: never;
                    default 67108864
  --log-files       of those that were moved aside so many are kept; default 4
  --metrics-listen  address of /metrics over HTTP; none unless given; port 0 takes a free one
  --core-dir        where the daemons of one host tell one another which cores their ranks use, so that ranks of all jobs
                    have cores of their own where there are enough; default: TROUPE_CORE_DIR of the environment, else
                    /dev/shm/troupe-cores
  --nvml            NVIDIA's management library, through which GPUs are watched; default: libnvidia-ml.so.1
  --measure-peak    times matrix products on all cores, writes the result into the data directory, and into profile.yaml
                    there what one of N devices at work does (layers, memory and links, for `troupe plan --profile`), and
                    ends; of GPUs, whose peak is known, into device_profile.yaml alone
  --burn-in         for so long (0: once) computes products and copies whose results are known, on every device (of
                    processors: on all cores), compares every number, prints a line for each, and ends; 1 where one is wrong
  --list-failpoints prints the points at which TROUPE_FAILPOINTS may strike, one a line, and ends

Exit codes: 0 stopped by SIGTERM or SIGINT, 1 failed or refused by the coordinator, 2 usage.
)";

constexpr int kFailed = 1;
constexpr int kUsageError = 2;
constexpr int kDevicesMax = 64;
constexpr int kBurnInMaxSeconds = 7 * 24 * 3600;

struct Flags {
  std::string coordinator;
  std::string name;
  std::string device_kind = "cpu";
  int devices = 0;
  std::string island;
  std::string host;
  std::string data_directory = ".";
  std::string peak_directory;
  std::string log_directory;
  LogLimit log;
  std::string metrics_listen;
  std::string core_directory;
  std::string nvml = kNvmlLibrary;
  bool measure_peak = false;
  std::optional<int> burn_in_seconds;
};

// Parses `text` into `flags`.
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

Status ParseBurnIn(std::string_view text, Flags* flags) {
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0 || seconds > kBurnInMaxSeconds) {
    return InvalidArgument("--burn-in is \"{}\", must be seconds from 0 to {}", text, kBurnInMaxSeconds);
  }
  flags->burn_in_seconds = seconds;
  return OkStatus();
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
    } else if (flag == "--host") {
      flags.host = value;
    } else if (flag == "--data-dir") {
      flags.data_directory = value;
    } else if (flag == "--peak-dir") {
      flags.peak_directory = value;
    } else if (flag == "--log-dir") {
      flags.log_directory = value;
    } else if (flag == "--log-bytes") {
      TROUPE_ASSIGN_OR_RETURN(flags.log.bytes, ParseLogNumber(flag, value, int64_t{1} << 40));
    } else if (flag == "--log-files") {
      TROUPE_ASSIGN_OR_RETURN(const int64_t files, ParseLogNumber(flag, value, kMostLogFiles));
      flags.log.files = static_cast<int>(files);
    } else if (flag == "--metrics-listen") {
      flags.metrics_listen = value;
    } else if (flag == "--core-dir") {
      flags.core_directory = value;
    } else if (flag == "--nvml") {
      flags.nvml = value;
    } else if (flag == "--burn-in") {
      TROUPE_RETURN_IF_ERROR(ParseBurnIn(value, &flags));
    } else {
      return InvalidArgument("unknown flag {}", flag);
    }
  }
  if (flags.core_directory.empty()) {
    const char* const set = std::getenv("TROUPE_CORE_DIR");
    flags.core_directory = set != nullptr && *set != '\0' ? set : CoreTable::kDefaultDirectory;
  }
  if (flags.log_directory.empty()) flags.log_directory = JoinPath(flags.data_directory, "logs");
  if (flags.measure_peak) return flags;
  if (flags.burn_in_seconds && flags.devices > 0) return flags;
  if (flags.burn_in_seconds) return InvalidArgument("--devices is required by --burn-in");
  if (flags.coordinator.empty()) return InvalidArgument("--coordinator is required");
  if (flags.name.empty()) return InvalidArgument("--name is required");
  if (flags.devices == 0) return InvalidArgument("--devices is required");
  return flags;
}

// Returns an absolute path, so that a rank's working directory does not matter.
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
  config.image_directory = Absolute(JoinPath(flags.data_directory, "images"));
  config.cluster = flags.coordinator;
  config.host_cores = ProbeHostCores();
  config.allowed_cores = AllowedCores();
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
  const auto images = FindRankImages(files, config.image_directory);
  if (images.ok()) {
    hello.mutable_images()->Assign(images->begin(), images->end());
  } else {
    LogWarning("worker", "images of former lives stay: {}", ToString(images.status()));
  }
  const std::vector<std::string> measured = {flags.data_directory, flags.peak_directory};
  const StatusOr<v1::DeviceProfile> profile = cuda ? FindDeviceProfile(files, measured, devices)
                                                   : FindProfile(files, measured, flags.devices);
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

int Fail(const Status& status) {
  fmt::print(stderr, "troupe-worker: {}\n", Message(status));
  return kFailed;
}

// Makes the backend of one device of `flags`: a GPU, or all cores.
StatusOr<std::unique_ptr<kernels::Backend>> MakeBackendOf(const Flags& flags, FileSystem& files, int device,
                                                          CollectiveNetwork* network) {
  constexpr Duration kWaitLimit = std::chrono::seconds(60);
  return MakeRankBackend({.devices = flags.device_kind,
                          .device = device,
                          .threads = omp_get_num_procs(),
                          .files = &files,
                          .folder = Absolute(flags.data_directory),
                          .network = network,
                          .wait_limit = kWaitLimit,
                          .connect_limit = kWaitLimit,
                          .close_limit = kWaitLimit});
}

int MeasureDevicesAndWrite(const Flags& flags) {
  PosixFileSystem files;
  const auto write = [&]() -> StatusOr<v1::DeviceProfile> {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<v1::Device> devices, ProbeCudaDevices(flags.devices));
    TROUPE_ASSIGN_OR_RETURN(
        const v1::DeviceProfile profile,
        MeasureDeviceProfile(devices, [&](int device, CollectiveNetwork* network) {
          return MakeBackendOf(flags, files, device, network);
        }));
    TROUPE_RETURN_IF_ERROR(WriteFileDurably(files, JoinPath(flags.data_directory, kDeviceProfileFile),
                                            AsBytes(ToYaml(profile))));
    return profile;
  };
  const StatusOr<v1::DeviceProfile> profile = write();
  if (!profile.ok()) return Fail(profile.status());
  fmt::print("{}", ToYaml(*profile));
  return 0;
}

// Runs on all GPUs at once, as jobs do; CPU devices share their cores, so it runs on one of them.
int RunBurnIn(const Flags& flags) {
  PosixFileSystem files;
  const bool cuda = flags.device_kind == "cuda";
  kernels::BurnInOptions options = {.at_least = std::chrono::seconds(*flags.burn_in_seconds)};
  if (!cuda) options.extent = 1024;
  std::vector<StatusOr<kernels::BurnInReport>> reports(static_cast<size_t>(cuda ? flags.devices : 1),
                                                       kernels::BurnInReport());
  std::vector<std::thread> threads;
  for (size_t device = 0; device < reports.size(); ++device) {
    threads.emplace_back([&, device] {
      const auto backend = MakeBackendOf(flags, files, static_cast<int>(device), nullptr);
      reports[device] = backend.ok() ? kernels::BurnIn(**backend, options) : backend.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  int code = 0;
  for (size_t device = 0; device < reports.size(); ++device) {
    const std::string name = cuda ? fmt::format("cuda:{}", device) : "cpu";
    if (const auto& report = reports[device]; report.ok()) {
      fmt::print("{{\"device\":\"{}\",\"rounds\":{},\"flops\":{:.3e},\"bytes\":{:.3e}}}\n", name, report->rounds,
                 report->flops, report->bytes);
    } else {
      code = Fail(Annotate(report.status(), name));
    }
  }
  return code;
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
  if (const Status written = write(); !written.ok()) return Fail(written);
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
  if (flags->burn_in_seconds) return RunBurnIn(*flags);
  if (flags->measure_peak) {
    return flags->device_kind == "cuda" ? MeasureDevicesAndWrite(*flags) : MeasureAndWrite(*flags);
  }
  if (!flags->host.empty()) {
    if (const Status bound = BindRanksTo(flags->host); !bound.ok()) {
      fmt::print(stderr, "troupe-worker: {}\n", Message(bound));
      return kUsageError;
    }
  }
  RaiseDescriptorLimit();
  LimitLog(flags->log);
  // The rank processes inherit these settings.
  setenv(kLogBytesVariable, fmt::format("{}", flags->log.bytes).c_str(), /*overwrite=*/1);
  setenv(kLogFilesVariable, fmt::format("{}", flags->log.files).c_str(), /*overwrite=*/1);
  SetLogContext(fmt::format("worker={}", flags->name));
  // Every thread inherits the mask; only the daemon's main loop receives these signals.
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
                                                      .core_table = flags->core_directory,
                                                      .nvml = flags->nvml})
                                         : config.status();
  return code.ok() ? *code : Fail(code.status());
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
