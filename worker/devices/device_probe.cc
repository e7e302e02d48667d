#include "worker/devices/device_probe.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl_version.h>
#include <ucp/api/ucp_version.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "base/durable_write.h"
#include "base/flag_parser.h"
#include "kernels/cpu/level.h"
#include "kernels/cpu/matmul.h"
#include "plan/job/key_schema.h"
#include "troupe/v1/job.pb.h"
#include "worker/rank/affinity.h"
#include "worker/rank/cuda_backend.h"
#include "worker/rank/xla_backend.h"

namespace troupe {
namespace {

namespace cpu = kernels::cpu;

constexpr char kPeakFile[] = "peak.txt";

// Sustained all-core clock and float32 operations per cycle and core (two fused multiply-adds of
// the vector width), as published by the vendor; bfloat16 dot products do twice as many.
struct KnownProcessor {
  const char* name;  // part of the model's name
  double gigahertz;
  double float32_per_cycle;
};
constexpr KnownProcessor kKnownProcessors[] = {
    {"AMD EPYC 9654", 3.55, 32},
    {"AMD EPYC 9554", 3.75, 32},
    {"AMD EPYC 9354", 3.75, 32},
};

std::string ReadText(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int Cores() { return static_cast<int>(AllowedCores().size()); }

// Returns "0,64": the hardware threads of the core that `thread` is on.
std::string SiblingsOf(int thread) {
  return ReadText(
      fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", thread).c_str());
}

// The conditions of a measurement: another processor, core count or level needs its own.
std::string PeakKey() {
  const StatusOr<cpu::Level> level = cpu::LevelFromEnvironment();
  return fmt::format("{} | {} cores | {}", ProcessorModel(ReadText("/proc/cpuinfo")), Cores(),
                     level.ok() ? cpu::Name(*level) : "unknown");
}

// Returns the best rate of several runs.
StatusOr<double> MatmulFlops(bool bfloat16, cpu::Level level, int64_t rows, int64_t k, int64_t n) {
  constexpr int kRuns = 8;
  TROUPE_ASSIGN_OR_RETURN(const auto matmul,
                          cpu::PrepareMatmul({.kind = kernels::MatmulKind::kForward,
                                              .bfloat16 = bfloat16,
                                              .rows = rows,
                                              .k = k,
                                              .n = n},
                                             level, omp_get_max_threads()));
  // All operands are zero, because values do not change the speed on these processors.
  std::vector<float> a(rows * k, 0.0f), b(n * k, 0.0f), c(rows * n, 0.0f);
  std::vector<char> scratch(static_cast<size_t>(std::max<int64_t>(matmul->scratch_bytes(), 1)) +
                            64);
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    TROUPE_RETURN_IF_ERROR(matmul->Run(a.data(), b.data(), c.data(), false, scratch.data()));
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, 2.0 * static_cast<double>(rows * k * n) / seconds);
  }
  return best;
}

}  // namespace

std::string ProcessorModel(const std::string& cpuinfo) {
  const size_t line = cpuinfo.find("model name");
  if (line == std::string::npos) return "unknown";
  const size_t colon = cpuinfo.find(':', line);
  const size_t end = cpuinfo.find('\n', line);
  if (colon == std::string::npos || colon > end) return "unknown";
  const size_t begin = cpuinfo.find_first_not_of(" \t", colon + 1);
  if (begin == std::string::npos || begin >= end) return "unknown";
  std::string model = cpuinfo.substr(begin, end - begin);
  while (!model.empty() && model.back() == ' ') model.pop_back();
  return model;
}

HostPeak KnownPeak(const std::string& model, int cores) {
  for (const KnownProcessor& known : kKnownProcessors) {
    if (model.find(known.name) == std::string::npos) continue;
    const double float32 = known.gigahertz * 1e9 * known.float32_per_cycle * cores;
    return {.float32 = float32, .bfloat16 = 2 * float32};
  }
  return {};
}

int PhysicalCores(const std::vector<int>& allowed,
                  const std::function<std::string(int thread)>& siblings) {
  std::set<std::string> cores;
  int unknown = 0;
  for (const int thread : allowed) {
    const std::string core = siblings(thread);
    if (core.empty()) {
      ++unknown;
    } else {
      cores.insert(core);
    }
  }
  return static_cast<int>(cores.size()) + unknown;
}

StatusOr<HostPeak> ReadMeasuredPeak(FileSystem& files, const std::string& directory) {
  const std::string path = JoinPath(directory, kPeakFile);
  TROUPE_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(files, path, 1 << 16, SymbolicLinks::kRefuse));
  std::istringstream lines(text);
  std::string key;
  HostPeak peak;
  std::getline(lines, key);
  if (key != PeakKey()) return NotFound("{} was measured on \"{}\"", path, key);
  if (!(lines >> peak.float32 >> peak.bfloat16) || !(peak.float32 > 0) || !(peak.bfloat16 > 0)) {
    return InvalidArgument("{} must contain two positive numbers after its first line", path);
  }
  return peak;
}

Status WriteMeasuredPeak(FileSystem& files, const std::string& directory, const HostPeak& peak) {
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, directory));
  return WriteFileDurably(
      files, JoinPath(directory, kPeakFile),
      AsBytes(fmt::format("{}\n{:.6e} {:.6e}\n", PeakKey(), peak.float32, peak.bfloat16)));
}

StatusOr<HostPeak> MeasurePeak() {
  constexpr int64_t kExtent = 2048;
  TROUPE_ASSIGN_OR_RETURN(const cpu::Level level, cpu::LevelFromEnvironment());
  omp_set_num_threads(Cores());
  HostPeak peak;
  TROUPE_ASSIGN_OR_RETURN(peak.float32, MatmulFlops(false, level, kExtent, kExtent, kExtent));
  TROUPE_ASSIGN_OR_RETURN(peak.bfloat16, MatmulFlops(true, level, kExtent, kExtent, kExtent));
  return peak;
}

HostPeak FindPeak(FileSystem& files, const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    if (directory.empty()) continue;
    if (const StatusOr<HostPeak> measured = ReadMeasuredPeak(files, directory); measured.ok())
      return *measured;
  }
  return KnownPeak(ProcessorModel(ReadText("/proc/cpuinfo")),
                   PhysicalCores(AllowedCores(), SiblingsOf));
}

int64_t MemoryLimitOfGroups(const std::string& root, const std::string& groups, int64_t memory) {
  // "0::/a/b" is the unified hierarchy (cgroup v2); "4:memory:/a/b" is the memory hierarchy of v1.
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && controllers != "memory") continue;
    const std::string file = unified ? "/memory.max" : "/memory.limit_in_bytes";
    const std::string top = unified ? root : root + "/memory";
    // Every ancestor group limits the groups within it.
    std::string path = line.substr(second + 1);
    while (true) {
      while (path.ends_with('/')) path.pop_back();
      const std::string text = ReadText(fmt::format("{}{}{}", top, path, file).c_str());
      int64_t limit = 0;
      const auto read = std::from_chars(text.data(), text.data() + text.size(), limit);
      if (read.ec == std::errc() && limit > 0) memory = std::min(memory, limit);
      if (path.empty()) break;
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return memory;
}

StatusOr<std::vector<v1::Device>> ProbeDevices(const WorkerDevices& stated, const HostPeak& peak) {
  const std::optional<v1::Devices> devices = FindWord<v1::Devices>(stated.kind);
  if (devices == v1::DEVICES_CPU) return ProbeCpuDevices(stated.count, peak);
  if (devices == v1::DEVICES_CUDA) return ProbeCudaDevices(stated.count);
  if (devices == v1::DEVICES_XLA) {
    TROUPE_ASSIGN_OR_RETURN(XlaDevices xla, ProbeXlaDevices(stated.count));
    if (!xla.tpus.empty()) return std::move(xla.tpus);
    TROUPE_ASSIGN_OR_RETURN(std::vector<v1::Device> probed, ProbeCpuDevices(stated.count, peak));
    for (v1::Device& device : probed) *device.mutable_kind() = xla.kind;
    return probed;
  }
  return Unimplemented("a worker cannot have devices {}", stated.ToText());
}

StatusOr<std::vector<v1::Device>> ProbeCpuDevices(int count, const HostPeak& peak) {
  TROUPE_ASSIGN_OR_RETURN(const cpu::Level level, cpu::LevelFromEnvironment());
  const int64_t memory =
      MemoryLimitOfGroups("/sys/fs/cgroup", ReadText("/proc/self/cgroup"),
                          static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE));
  std::vector<v1::Device> devices(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    v1::Device& device = devices[static_cast<size_t>(i)];
    device.set_index(i);
    device.mutable_kind()->set_kind("cpu");
    device.mutable_kind()->set_model(ProcessorModel(ReadText("/proc/cpuinfo")));
    device.mutable_kind()->set_kernel_level(cpu::Name(level));
    device.mutable_kind()->set_versions(
        fmt::format("oneDNN {}.{}.{}; UCX {}.{}; troupe {}", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR,
                    DNNL_VERSION_PATCH, UCP_API_MAJOR, UCP_API_MINOR, kVersion));
    device.set_memory_bytes(memory / count);
    device.set_cores(Cores());
    device.set_peak_flops_float32(peak.float32);
    device.set_peak_flops_bfloat16(peak.bfloat16);
  }
  return devices;
}

}  // namespace troupe
