#include "worker/devices/others_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string_view>

#include "base/text/printable.h"
#include "worker/devices/nvml.h"
#include "worker/rank/affinity.h"

namespace troupe {
namespace {

constexpr double kMostShareOfOthers = 0.05;
// The first part of a measurement takes so much of its time that a calm rest cannot make up for it.
constexpr double kVainShareOfOthers = 0.25;
constexpr std::string_view kNothingWritten =
    "nothing was written: measure on an idle machine, or add --even-if-busy";

std::string StatText() {
  std::ostringstream text;
  text << std::ifstream("/proc/stat").rdbuf();
  return text.str();
}

double OwnSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Status ReadGpuLoad(const StatusOr<std::unique_ptr<Nvml>>& loaded, const std::string& id,
                   GpuLoad* load) {
  TROUPE_RETURN_IF_ERROR(loaded.status());
  TROUPE_ASSIGN_OR_RETURN(const nvml::Device device, (*loaded)->Find(id));
  if (const auto sample = (*loaded)->Sample(device); sample.ok())
    load->utilization = sample->utilization;
  TROUPE_ASSIGN_OR_RETURN(load->processes, (*loaded)->ComputeProcesses(device));
  return OkStatus();
}

// Returns "GPU-… (2 processes, busy for 87% of the time)".
std::string GpuLoadText(const GpuLoad& load) {
  std::string text;
  if (load.processes)
    text = fmt::format("{} process{}", *load.processes, *load.processes == 1 ? "" : "es");
  if (load.utilization) {
    text += fmt::format("{}busy for {:.0f}% of the time", text.empty() ? "" : ", ",
                        100 * *load.utilization);
  }
  return fmt::format("{} ({})", load.name, text);
}

}  // namespace

std::optional<double> BusySeconds(const std::string& stat, const std::vector<int>& cores,
                                  double ticks_per_second) {
  std::map<std::string, double> busy_ticks;  // by "cpu3"
  std::istringstream lines(stat);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    double user = 0, nice = 0, system = 0, idle = 0, io_wait = 0, irq = 0, soft_irq = 0, steal = 0;
    // The time of guests, which follows, is a part of `user` and `nice`.
    if (words >> name >> user >> nice >> system >> idle >> io_wait >> irq >> soft_irq >> steal)
      busy_ticks[name] = user + nice + system + irq + soft_irq + steal;
  }
  double ticks = 0;
  for (const int core : cores) {
    const auto found = busy_ticks.find(fmt::format("cpu{}", core));
    if (found == busy_ticks.end()) return std::nullopt;
    ticks += found->second;
  }
  return ticks / ticks_per_second;
}

bool SpoilsRates(double others, int cores) { return others > kMostShareOfOthers * cores; }

StatusOr<std::string> NoteOnLoad(std::optional<double> others, int cores, bool even_if_busy) {
  if (!others) return "the system does not report whether other programs used the cores";
  if (!SpoilsRates(*others, cores)) return "";
  const std::string note = fmt::format(
      "other programs used {:.2f} of {} cores during the measurement, so its rates are too low",
      *others, cores);
  if (even_if_busy) return note;
  return FailedPrecondition("{}; {}", note, kNothingWritten);
}

Status CheckLoadSoFar(std::optional<double> others, int cores, bool even_if_busy) {
  if (!others || *others <= kVainShareOfOthers * cores) return OkStatus();
  return NoteOnLoad(others, cores, even_if_busy).status();
}

std::vector<GpuLoad> LoadOfGpus(const std::string& library,
                                const std::vector<v1::Device>& devices) {
  const StatusOr<std::unique_ptr<Nvml>> loaded = Nvml::Load(library);
  std::vector<GpuLoad> loads;
  for (const v1::Device& device : devices) {
    GpuLoad& load = loads.emplace_back();
    load.name = device.id().empty() ? fmt::format("device {}", device.index()) : device.id();
    const Status read = ReadGpuLoad(loaded, device.id(), &load);
    if (!load.processes && !load.utilization) load.fault = PrintableLine(Message(read));
  }
  return loads;
}

StatusOr<std::string> NoteOnGpuLoad(const std::vector<GpuLoad>& gpus, bool even_if_busy) {
  std::string busy, unknown;
  for (const GpuLoad& gpu : gpus) {
    if (!gpu.processes && !gpu.utilization) {
      unknown += fmt::format("{}{} ({})", unknown.empty() ? "" : ", ", gpu.name, gpu.fault);
    } else if (gpu.processes.value_or(0) > 0 || gpu.utilization.value_or(0) > kMostShareOfOthers) {
      busy += (busy.empty() ? "" : ", ") + GpuLoadText(gpu);
    }
  }
  if (busy.empty() && unknown.empty()) return "";
  if (busy.empty())
    return fmt::format("it is not known whether other programs used the GPUs: {}", unknown);
  const std::string note = fmt::format(
      "other programs used GPUs before the measurement, so its rates may be too low: {}", busy);
  if (even_if_busy) return note;
  return FailedPrecondition("{}; {}", note, kNothingWritten);
}

OthersLoad::OthersLoad()
    : cores_(AllowedCores()),
      begin_(std::chrono::steady_clock::now()),
      seconds_at_begin_(SecondsOfOthers()) {}

std::optional<double> OthersLoad::SecondsOfOthers() const {
  const std::optional<double> busy =
      BusySeconds(StatText(), cores_, static_cast<double>(sysconf(_SC_CLK_TCK)));
  if (!busy) return std::nullopt;
  return *busy - OwnSeconds();
}

std::optional<double> OthersLoad::Cores() const {
  const std::optional<double> now = SecondsOfOthers();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
  if (!now || !seconds_at_begin_ || passed.count() <= 0) return std::nullopt;
  return std::max(0.0, *now - *seconds_at_begin_) / passed.count();
}

}  // namespace troupe
