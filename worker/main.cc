// troupe-worker: owns the devices of one host and runs the ranks that the coordinator places there.

#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/durable_write.h"
#include "base/failpoint.h"
#include "base/file_system.h"
#include "base/flag_parser.h"
#include "base/log.h"
#include "base/log_rotation.h"
#include "base/program/descriptor_limit.h"
#include "base/program/program.h"
#include "base/security/authority_files.h"
#include "base/security/grpc_log.h"
#include "base/security/secret.h"
#include "base/security/security_flags.h"
#include "base/text/printable.h"
#include "checkpoint/write/rank_image.h"
#include "kernels/backend/burn_in.h"
#include "plan/device/device_traits.h"
#include "plan/device/worker_devices.h"
#include "plan/job/key_schema.h"
#include "plan/layout/worker_name.h"
#include "worker/daemon/core_table.h"
#include "worker/daemon/core_topology.h"
#include "worker/daemon/daemon.h"
#include "worker/daemon/drain_flags.h"
#include "worker/daemon/host_network.h"
#include "worker/daemon/incarnation.h"
#include "worker/devices/device_probe.h"
#include "worker/devices/measure_profile.h"
#include "worker/devices/nvml.h"
#include "worker/devices/others_load.h"
#include "worker/rank/affinity.h"
#include "worker/rank/rank_backend.h"
#include "worker/rank/rank_process.h"
#include "worker/rank/xla_backend.h"

namespace troupe {
namespace {

// `{0}`: the forms of --devices.
constexpr char kUsage[] =
    R"(troupe-worker --coordinator HOST:PORT --name NAME --devices {0} [FLAG …]
       troupe-worker --measure-peak --data-dir DIR [--devices {0}] [--even-if-busy]
       troupe-worker --burn-in SECONDS --devices {0}
       troupe-worker --list-failpoints)";
constexpr char kFooter[] =
    "Exit codes: 0 stopped by SIGTERM or SIGINT, 1 failed or refused by the coordinator, 2 wrong "
    "usage.";

constexpr int kFailed = 1;
constexpr int kUsageError = 2;
constexpr int kBurnInMaxSeconds = 7 * 24 * 3600;

struct Flags {
  std::string coordinator;
  std::string name;
  WorkerDevices devices = {.count = 0};  // count 0: the flag is not given
  std::string island;
  std::string host;
  std::string data_directory = ".";
  std::string peak_directory;
  std::string log_directory;
  LogLimit log;
  std::string metrics_listen;
  std::string health_listen;
  SecurityFlags security;
  std::optional<TlsFiles> tls;  // those of --tls-dir
  std::string core_directory;
  std::string nvml = kNvmlLibrary;
  DrainFlags drain;
  bool measure_peak = false;
  bool even_if_busy = false;
  std::optional<int> burn_in_seconds;
  bool list_failpoints = false;
  bool allow_failpoints = false;
  std::optional<RankDescriptors> rank_process;
};

// Returns "cpu:N: N devices that …; cuda:N: …".
std::string DevicesHelp() {
  std::string help;
  for (const std::string_view kind : DeviceKinds()) {
    help += fmt::format("{}{}:N: {}", help.empty() ? "" : "; ", kind,
                        DeviceTraitsOf(kind).shares_host_cores
                            ? "N devices that share the cores of this host"
                            : "the first N such devices of this host");
  }
  return help;
}

void AddDaemonFlags(FlagParser& parser, Flags* flags) {
  parser.AddText({"--coordinator", "HOST:PORT",
                  "address of the coordinator, which the worker dials until it answers"},
                 &flags->coordinator);
  parser.AddText({"--name", "NAME", "name of this worker, unique in the cluster: [A-Za-z0-9._-]"},
                 &flags->name);
  parser.AddParsed({"--devices", WorkerDevicesForms("|"), DevicesHelp()},
                   [flags](const std::string& value) -> Status {
                     TROUPE_ASSIGN_OR_RETURN(flags->devices, ParseWorkerDevices(value));
                     return OkStatus();
                   });
  parser.AddText({"--island", "NAME",
                  "workers joined by the fastest fabric have the same island (default: the host)"},
                 &flags->island);
  parser.AddText({"--host", "ADDRESS",
                  "address of this machine on which its ranks listen for their peers (UCX and "
                  "NCCL); UCX_NET_DEVICES and NCCL_SOCKET_IFNAME take precedence if set (default: "
                  "the address by which it reaches the coordinator)"},
                 &flags->host);
  parser.AddText({"--data-dir", "DIR",
                  "directory of the measured peak of this host, of the worker's incarnation "
                  "number, and of the state of ranks whose last checkpoint cannot be written"},
                 &flags->data_directory);
  parser.AddText({"--peak-dir", "DIR",
                  "second directory in which the worker looks for the measured peak, so that "
                  "workers of one host can share a measurement"},
                 &flags->peak_directory);
  parser.AddText(
      {"--log-dir", "DIR",
       "directory of the ranks' logs, JOB/rank-R.NAME.log (default: logs in --data-dir)"},
      &flags->log_directory);
  parser.AddNumber({"--log-bytes", "BYTES",
                    "size at which the log of the daemon or of a rank is rotated to LOG.1, LOG.2 "
                    "…; 0: never"},
                   {0, kMostLogBytes}, &flags->log.bytes);
  parser.AddNumber({"--log-files", "N", "rotated logs that are kept of each log"},
                   {0, kMostLogFiles}, &flags->log.files);
  parser.AddText(
      {"--metrics-listen", "HOST:PORT",
       "address of /metrics: over HTTP on the loopback, elsewhere over HTTPS with the "
       "certificates of --tls-dir, for clients with a certificate; port 0 selects a free "
       "one (default: no metrics)"},
      &flags->metrics_listen);
  parser.AddText(
      {"--health-listen", "HOST:PORT",
       "address of the pages /healthz and /readyz over HTTP, whose answer is ok or not ok, "
       "for a kubelet; port 0 selects a free one (default: no pages)"},
      &flags->health_listen);
  AddSecurityFlags(parser, Role::kWorker, &flags->security);
  parser.AddText({"--core-dir", "DIR",
                  "directory in which the daemons of one host record the cores of their ranks, so "
                  "that ranks of different jobs use different cores where there are enough "
                  "(default: $TROUPE_CORE_DIR, else " +
                      std::string(CoreTable::kDefaultDirectory) + ")"},
                 &flags->core_directory);
  parser.AddText({"--nvml", "LIBRARY",
                  "NVIDIA's management library, through which the worker watches its GPUs"},
                 &flags->nvml);
}

void AddTaskFlags(FlagParser& parser, Flags* flags) {
  parser.AddSwitch({"--measure-peak", "",
                    "measures the matmul rate of all cores, writes it into --data-dir, writes the "
                    "profile of N busy devices (layers, memory and links, for `troupe plan "
                    "--profile`) into profile.yaml there, and exits; for GPUs, whose peak is "
                    "known, it writes only device_profile.yaml"},
                   &flags->measure_peak);
  parser.AddSwitch({"--even-if-busy", "",
                    "with --measure-peak: writes the rates, with a note, even if other programs "
                    "used more than a twentieth of the cores meanwhile, or the GPUs before; "
                    "without it nothing is written then, and the exit code is 1"},
                   &flags->even_if_busy);
  parser.AddOptionalNumber(
      {"--burn-in", "SECONDS",
       "for this time, from 0 (one round) to 604800, computes matmuls and copies with known "
       "results on every device (cpu: on all cores), checks every number, prints a line for each "
       "device, and exits; the exit code is 1 if a number is wrong"},
      {0, kBurnInMaxSeconds}, &flags->burn_in_seconds);
  parser.AddSwitch({"--list-failpoints", "",
                    "prints the names that TROUPE_FAILPOINTS accepts, one per line, and exits"},
                   &flags->list_failpoints);
  parser.AddSwitch({kAllowFailpointsFlag, "", kAllowFailpointsHelp}, &flags->allow_failpoints);
  // Only the daemon starts rank processes, so the help text does not mention this flag.
  parser.AddParsed({"--rank-process", "SOCKET,PROGRESS"},
                   [flags](const std::string& value) -> Status {
                     TROUPE_ASSIGN_OR_RETURN(flags->rank_process, ParseRankDescriptors(value));
                     return OkStatus();
                   });
}

// Reads the TLS files, and checks the addresses that the worker dials and listens on.
Status CheckSecurity(Flags* flags) {
  const FlagAddress addresses[] = {{"--coordinator", flags->coordinator},
                                   {"--metrics-listen", flags->metrics_listen}};
  // A renewal may have ended half-way, with the former process.
  if (flags->security.tls_directory)
    TROUPE_RETURN_IF_ERROR(FinishTlsDirectory(*flags->security.tls_directory));
  TROUPE_ASSIGN_OR_RETURN(flags->tls, CheckSecurityFlags(flags->security, Role::kWorker, addresses,
                                                         WallSeconds(SystemClock())));
  if (!flags->tls || flags->tls->identity.name == flags->name) return OkStatus();
  return InvalidArgument("--name is \"{}\", but {} is the certificate of {}", flags->name,
                         flags->tls->certificate, ToUri(flags->tls->identity));
}

// Returns an absolute path, so that a rank's working directory does not matter.
std::string Absolute(const std::string& path) {
  if (path.starts_with('/')) return path;
  const std::unique_ptr<char, decltype(&std::free)> here(get_current_dir_name(), &std::free);
  return JoinPath(here ? here.get() : "/", path);
}

// Fills defaults that depend on the environment or on other flags, and checks what each form of the
// command requires.
Status CompleteFlags(Flags* flags) {
  if (flags->list_failpoints) return OkStatus();
  TROUPE_RETURN_IF_ERROR(ArmFailpointsFromEnvironment(flags->allow_failpoints));
  if (flags->rank_process) return OkStatus();
  if (flags->core_directory.empty()) {
    TROUPE_ASSIGN_OR_RETURN(const auto set, TextFromEnvironment("TROUPE_CORE_DIR"));
    flags->core_directory = set.value_or(CoreTable::kDefaultDirectory);
  }
  if (flags->log_directory.empty()) flags->log_directory = JoinPath(flags->data_directory, "logs");
  TROUPE_RETURN_IF_ERROR(CheckText("--data-dir", Absolute(flags->data_directory)));
  TROUPE_RETURN_IF_ERROR(CheckText("--log-dir", Absolute(flags->log_directory)));
  if (flags->even_if_busy && !flags->measure_peak)
    return InvalidArgument("--even-if-busy needs --measure-peak");
  if (flags->measure_peak) return OkStatus();
  if (flags->burn_in_seconds && flags->devices.count > 0) return OkStatus();
  if (flags->burn_in_seconds) return InvalidArgument("--devices is required by --burn-in");
  if (flags->coordinator.empty()) return InvalidArgument("--coordinator is required");
  if (flags->name.empty()) return InvalidArgument("--name is required");
  if (const Status good = CheckWorkerName(flags->name); !good.ok())
    return InvalidArgument("--name is \"{}\": the {}", flags->name, Message(good));
  if (flags->devices.count == 0) return InvalidArgument("--devices is required");
  TROUPE_RETURN_IF_ERROR(CheckDrainFlags(flags->drain));
  TROUPE_RETURN_IF_ERROR(CheckHostPort("--coordinator", flags->coordinator, 1));
  if (!flags->metrics_listen.empty())
    TROUPE_RETURN_IF_ERROR(CheckHostPort("--metrics-listen", flags->metrics_listen, 0));
  if (!flags->health_listen.empty())
    TROUPE_RETURN_IF_ERROR(CheckHostPort("--health-listen", flags->health_listen, 0));
  return CheckSecurity(flags);
}

// Returns the folder for what is found by timing on the devices of this worker.
std::string TuningDirectory(const Flags& flags) {
  return Absolute(JoinPath(flags.data_directory, "tuning"));
}

StatusOr<session::Config> MakeConfig(const Flags& flags) {
  PosixFileSystem files;
  session::Config config;
  config.log_directory = Absolute(flags.log_directory);
  config.image_directory = Absolute(JoinPath(flags.data_directory, "images"));
  config.tuning_directory = TuningDirectory(flags);
  config.executable_directory = Absolute(JoinPath(flags.data_directory, "executables"));
  config.cluster = flags.coordinator;
  config.has_tls = flags.tls.has_value();
  config.host_cores = ProbeHostCores();
  config.allowed_cores = AllowedCores();
  const HostPeak peak = FindPeak(files, {flags.data_directory, flags.peak_directory});
  TROUPE_ASSIGN_OR_RETURN(const std::vector<v1::Device> devices, ProbeDevices(flags.devices, peak));
  v1::Hello& hello = config.identity;
  hello.set_protocol_version(session::kProtocolVersion);
  hello.set_name(flags.name);
  TROUPE_ASSIGN_OR_RETURN(const uint64_t incarnation,
                          NextIncarnation(files, Absolute(flags.data_directory), flags.name,
                                          static_cast<uint64_t>(SystemClock().WallNanoseconds())));
  hello.set_incarnation(incarnation);
  const auto images = FindRankImages(files, config.image_directory);
  if (images.ok()) {
    hello.mutable_images()->Assign(images->begin(), images->end());
  } else {
    LogWarning("worker", "images of earlier incarnations are kept: {}", ToString(images.status()));
  }
  const std::vector<std::string> measured = {flags.data_directory, flags.peak_directory};
  const StatusOr<v1::DeviceProfile> profile =
      FindDeviceTraits(devices.front().kind())->shares_host_cores
          ? FindProfile(files, measured, flags.devices.count)
          : FindDeviceProfile(files, measured, devices);
  if (!profile.ok()) LogInfo("worker", "{}", Message(profile.status()));
  for (const v1::Device& device : devices) {
    v1::Device& announced = *hello.add_devices();
    announced = device;
    if (profile.ok()) *announced.mutable_profile() = *profile;
  }
  hello.set_island(flags.island);
  utsname host{};
  uname(&host);
  hello.set_host(PrintableLine(host.nodename));
  hello.set_pid(getpid());
  hello.set_life_key(RandomSecret());
  return config;
}

// Prints one line of JSON.
void PrintJson(const nlohmann::ordered_json& json) { PrintOutput("{}\n", json.dump()); }

int Fail(const Status& status) {
  PrintMessage("troupe-worker: {}\n", Message(status));
  return kFailed;
}

// Makes the backend of one device of `flags`. Devices that share the cores of the host are one
// device, which has all of them.
StatusOr<std::unique_ptr<kernels::Backend>> MakeBackendOf(const Flags& flags, FileSystem& files,
                                                          int device, CollectiveNetwork* network) {
  constexpr Duration kWaitLimit = std::chrono::seconds(60);
  return MakeRankBackend({.devices = flags.devices.kind,
                          .device = device,
                          .threads = omp_get_num_procs(),
                          .files = &files,
                          .tuning_folder = TuningDirectory(flags),
                          .network = network,
                          .wait_limit = kWaitLimit,
                          .connect_limit = kWaitLimit,
                          .close_limit = kWaitLimit});
}

// Returns a profile as its file, with a note on the load of others above it, which is also printed.
std::string WithNote(const std::string& note, const v1::DeviceProfile& profile) {
  if (note.empty()) return ToYaml(profile);
  PrintMessage("warning: {}\n", note);
  return fmt::format("# {}\n{}", note, ToYaml(profile));
}

int MeasureDevicesAndWrite(const Flags& flags) {
  PosixFileSystem files;
  const auto write = [&]() -> StatusOr<v1::DeviceProfile> {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<v1::Device> devices, ProbeDevices(flags.devices, {}));
    // Before this process has work on them.
    TROUPE_ASSIGN_OR_RETURN(const std::string note,
                            NoteOnGpuLoad(LoadOfGpus(flags.nvml, devices), flags.even_if_busy));
    TROUPE_ASSIGN_OR_RETURN(
        const v1::DeviceProfile profile,
        MeasureDeviceProfile(devices, [&](int device, CollectiveNetwork* network) {
          return MakeBackendOf(flags, files, device, network);
        }));
    TROUPE_RETURN_IF_ERROR(WriteFileDurably(files,
                                            JoinPath(flags.data_directory, kDeviceProfileFile),
                                            AsBytes(WithNote(note, profile))));
    return profile;
  };
  const StatusOr<v1::DeviceProfile> profile = write();
  if (!profile.ok()) return Fail(profile.status());
  PrintOutput("{}", Lines{ToYaml(*profile)});
  return 0;
}

// Runs on all devices at once, as jobs do, or on one of those that share the cores of the host.
int RunBurnIn(const Flags& flags) {
  PosixFileSystem files;
  if (FindWord<v1::Devices>(flags.devices.kind) == v1::DEVICES_XLA && HostHasTpus()) {
    PrintJson({{"device", flags.devices.kind},
               {"skipped", "only a rank of a job opens a chip of a TPU"}});
    return 0;
  }
  const bool shares_cores = DeviceTraitsOf(flags.devices.kind).shares_host_cores;
  kernels::BurnInOptions options = {.at_least = std::chrono::seconds(*flags.burn_in_seconds)};
  if (shares_cores) options.extent = 1024;
  std::vector<StatusOr<kernels::BurnInReport>> reports(
      static_cast<size_t>(shares_cores ? 1 : flags.devices.count), kernels::BurnInReport());
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
    const std::string name =
        shares_cores ? flags.devices.kind : fmt::format("{}:{}", flags.devices.kind, device);
    if (const auto& report = reports[device]; report.ok()) {
      PrintJson({{"device", name},
                 {"rounds", report->rounds},
                 {"flops", report->flops},
                 {"bytes", report->bytes}});
    } else {
      code = Fail(Annotate(report.status(), name));
    }
  }
  return code;
}

int MeasureAndWrite(const Flags& flags) {
  PosixFileSystem files;
  const OthersLoad load;
  const StatusOr<HostPeak> peak = MeasurePeak();
  std::optional<double> others;
  const auto measure = [&]() -> Status {
    TROUPE_RETURN_IF_ERROR(peak.status());
    const int cores = static_cast<int>(AllowedCores().size());
    TROUPE_RETURN_IF_ERROR(CheckLoadSoFar(load.Cores(), cores, flags.even_if_busy));
    TROUPE_ASSIGN_OR_RETURN(const v1::DeviceProfile profile,
                            MeasureProfile(*peak, std::max(1, flags.devices.count)));
    others = load.Cores();
    TROUPE_ASSIGN_OR_RETURN(const std::string note, NoteOnLoad(others, cores, flags.even_if_busy));
    TROUPE_RETURN_IF_ERROR(WriteMeasuredPeak(files, flags.data_directory, *peak));
    return WriteFileDurably(files, JoinPath(flags.data_directory, kProfileFile),
                            AsBytes(WithNote(note, profile)));
  };
  if (const Status measured = measure(); !measured.ok()) return Fail(measured);
  PrintJson({{"float32", peak->float32},
             {"bfloat16", peak->bfloat16},
             {"cores_of_others", others ? nlohmann::ordered_json(*others) : nullptr}});
  return 0;
}

// Blocks the signals that end the daemon. Every thread inherits the mask; only this wait and the
// daemon's main loop receive them.
sigset_t BlockEndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int Main(int argc, char** argv) {
  Flags flags;
  FlagParser parser({.name = "troupe-worker",
                     .usage = fmt::format(kUsage, WorkerDevicesForms("|")),
                     .summary = "Owns the devices of one host and runs the ranks that the "
                                "coordinator places there.",
                     .footer = kFooter});
  AddDaemonFlags(parser, &flags);
  AddDrainFlags(parser, &flags.drain);
  AddTaskFlags(parser, &flags);
  const std::optional<int> ended =
      parser.ParseMain(argc, argv, [&flags] { return CompleteFlags(&flags); });
  if (ended) return *ended;
  if (flags.list_failpoints) {
    for (const FailpointName& point : AllFailpoints()) PrintOutput("{}\n", point.name);
    return 0;
  }
  if (flags.rank_process) return RunRankProcess(*flags.rank_process);
  if (flags.burn_in_seconds) return RunBurnIn(flags);
  if (flags.measure_peak) {
    return DeviceTraitsOf(flags.devices.kind).shares_host_cores ? MeasureAndWrite(flags)
                                                                : MeasureDevicesAndWrite(flags);
  }
  const StatusOr<std::string> host = BindRanks(flags.host, flags.coordinator, BlockEndSignals());
  if (host.status().code() == StatusCode::kCancelled) {
    LogInfo("worker", "{}", Message(host.status()));
    return 0;
  }
  if (!host.ok()) {
    const int code = Fail(host.status());
    return host.status().code() == StatusCode::kInvalidArgument ? kUsageError : code;
  }
  RaiseDescriptorLimit();
  LimitLog(flags.log);
  // The rank processes inherit these settings.
  setenv(kLogBytesVariable, fmt::format("{}", flags.log.bytes).c_str(), /*overwrite=*/1);
  setenv(kLogFilesVariable, fmt::format("{}", flags.log.files).c_str(), /*overwrite=*/1);
  SetLogContext(fmt::format("worker={}", flags.name));
  LogGrpcRecords();
  const char* const transports = std::getenv("UCX_TLS");
  LogInfo("worker",
          "ranks reach their peers by {}: UCX_NET_DEVICES={}, UCX_TLS={}, NCCL_SOCKET_IFNAME={}",
          *host, std::getenv("UCX_NET_DEVICES"), transports == nullptr ? "all" : transports,
          std::getenv("NCCL_SOCKET_IFNAME"));
  signal(SIGPIPE, SIG_IGN);

  StatusOr<session::Config> config = MakeConfig(flags);
  const StatusOr<int> code =
      config.ok() ? RunDaemon({.coordinator = flags.coordinator,
                               .tls = flags.tls,
                               .insecure = flags.security.insecure,
                               .metrics_listen = flags.metrics_listen,
                               .host = *host,
                               .health_listen = flags.health_listen,
                               .session = *std::move(config),
                               .executable = "/proc/self/exe",
                               .core_table = flags.core_directory,
                               .nvml = flags.nvml,
                               .drain_limit = std::chrono::seconds(flags.drain.seconds),
                               .spot = flags.drain.spot,
                               .metadata_url = flags.drain.metadata_url})
                  : config.status();
  return code.ok() ? *code : Fail(code.status());
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  return troupe::RunProgram("troupe-worker", [&] { return troupe::Main(argc, argv); });
}
