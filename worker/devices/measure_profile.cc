#include "worker/devices/measure_profile.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "collective/network.h"
#include "collective/reduction.h"
#include "collective/ucx/ucx_transport.h"
#include "kernels/backend/plain_program.h"
#include "kernels/cpu/level.h"
#include "plan/device/device_profile.h"

namespace troupe {
namespace {

constexpr Duration kLimit = std::chrono::seconds(20);
constexpr size_t kLargeOnTheHost = size_t{1} << 25;

double SecondsOf(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// Bytes per second read and written by a sum of two arrays on all cores.
double MemoryRate() {
  constexpr int64_t kElements = int64_t{1} << 24;
  std::vector<float> x(kElements, 1.0f), y(kElements, 2.0f);
  std::vector<double> seconds;
  for (int run = 0; run < 5; ++run) {
    seconds.push_back(SecondsOf([&] {
#pragma omp parallel for
      for (int64_t i = 0; i < kElements; ++i) y[i] += x[i];
    }));
  }
  return 3.0 * kElements * sizeof(float) / Median(std::move(seconds));
}

// Seconds to start an operation on all cores.
double LaunchSeconds() {
  std::vector<double> seconds;
  for (int run = 0; run < 1000; ++run) {
    seconds.push_back(SecondsOf([] {
#pragma omp parallel
      {}
    }));
  }
  return Median(std::move(seconds));
}

// Returns the seconds of one all-reduce of `bytes` bytes by the two ranks of `group`, as measured
// on this rank: the median of `runs`.
using AllReduceSeconds = std::function<StatusOr<double>(
    int rank, CollectiveNetwork* network, Communicator* group, size_t bytes, int runs)>;

StatusOr<double> OnTheHost(int rank, CollectiveNetwork* network, Communicator* group, size_t bytes,
                           int runs) {
  std::vector<float> data(bytes / sizeof(float));
  std::vector<double> seconds;
  for (int run = 0; run < runs; ++run) {
    TROUPE_RETURN_IF_ERROR(group->Barrier());
    Status status;
    seconds.push_back(
        SecondsOf([&] { status = group->AllReduce(data.data(), data.size(), SumFloat32()); }));
    TROUPE_RETURN_IF_ERROR(status);
  }
  return Median(std::move(seconds));
}

// Measures between devices, with an all_reduce operation as programs have it.
AllReduceSeconds OnDevices(const MakeDeviceBackend& make) {
  return [make](int rank, CollectiveNetwork* network, Communicator* group, size_t bytes,
                int runs) -> StatusOr<double> {
    model::Program program = kernels::PlainProgram();
    program.mesh.degrees[model::Axis::kTensor] = 2;
    program.mesh.coordinates[model::Axis::kTensor] = rank;
    const model::ValueId data = kernels::AddPlainValue(
        program, model::DType::kFloat32, {static_cast<int64_t>(bytes / sizeof(float))}, "data");
    const model::ValueId sum = kernels::AddPlainValue(
        program, model::DType::kFloat32, {static_cast<int64_t>(bytes / sizeof(float))}, "sum");
    const model::AllReduceAttributes attributes = {
        {model::GroupOf(model::Axis::kTensor), model::CollectivePurpose::kTensor}};
    kernels::AddPlainOp(program, {model::OpKind::kAllReduce, attributes, {data}, {sum}});
    const model::MemoryPlan plan = kernels::PlainPlan(program);
    TROUPE_ASSIGN_OR_RETURN(const auto backend, make(rank, network));
    TROUPE_ASSIGN_OR_RETURN(
        const auto executable,
        backend->Prepare(program, plan, [&](const model::CollectiveGroup&) { return group; }));
    TROUPE_RETURN_IF_ERROR(executable->Connect());
    const std::vector<float> zeros(bytes / sizeof(float));
    TROUPE_RETURN_IF_ERROR(executable->Write(data, 0, std::as_bytes(std::span(zeros))));
    std::vector<double> seconds;
    for (int run = 0; run < runs; ++run) {
      TROUPE_RETURN_IF_ERROR(group->Barrier());
      Status status;
      seconds.push_back(SecondsOf([&] {
        status = executable->Run(0, model::Piece::kForward, 0, {});
        status.Update(executable->Finish());
      }));
      TROUPE_RETURN_IF_ERROR(status);
    }
    return Median(std::move(seconds));
  };
}

// With two ranks a ring sends as many bytes as it reduces, in two messages; a small sum takes one
// message.
StatusOr<v1::LinkProfile> MeasureLink(const AllReduceSeconds& seconds_of, size_t large_bytes) {
  constexpr size_t kSmall = 64;
  std::unique_ptr<CollectiveNetwork> networks[2];
  Communicator* groups[2];
  for (int rank = 0; rank < 2; ++rank) {
    TROUPE_ASSIGN_OR_RETURN(auto transport, MakeUcxTransport());
    TROUPE_ASSIGN_OR_RETURN(
        networks[rank],
        CollectiveNetwork::Make(
            {.rank = rank, .ranks = 2, .ranks_on_host = 2, .cores_on_host = omp_get_num_procs()},
            std::move(transport)));
    TROUPE_ASSIGN_OR_RETURN(
        groups[rank], networks[rank]->MakeCommunicator("link", Purpose::kTensor, {0, 1}, "link"));
  }
  const std::vector<std::string> addresses = {networks[0]->address(), networks[1]->address()};
  StatusOr<v1::LinkProfile> links[2] = {v1::LinkProfile(), v1::LinkProfile()};
  const auto measure = [&](int rank) -> StatusOr<v1::LinkProfile> {
    CollectiveNetwork* const network = networks[rank].get();
    TROUPE_RETURN_IF_ERROR(network->Connect(addresses, kLimit));
    v1::LinkProfile link;
    TROUPE_ASSIGN_OR_RETURN(const double latency,
                            seconds_of(rank, network, groups[rank], kSmall, 501));
    TROUPE_ASSIGN_OR_RETURN(const double seconds,
                            seconds_of(rank, network, groups[rank], large_bytes, 9));
    link.set_latency_seconds(latency);
    link.set_bytes_per_second(static_cast<double>(large_bytes) / seconds);
    TROUPE_RETURN_IF_ERROR(groups[rank]->Barrier());
    TROUPE_RETURN_IF_ERROR(network->Close(kLimit));
    return link;
  };
  // A rank that has failed ends the other's waits.
  const auto measure_or_abort = [&](int rank) {
    links[rank] = measure(rank);
    if (!links[rank].ok()) networks[rank]->Abort(links[rank].status());
  };
  std::thread other([&] { measure_or_abort(1); });
  measure_or_abort(0);
  other.join();
  TROUPE_RETURN_IF_ERROR(links[1].status());
  return links[0];
}

StatusOr<v1::DeviceProfile> ReadProfile(FileSystem& files, const std::string& path) {
  constexpr int64_t kMaxBytes = 1 << 16;
  TROUPE_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(files, path, kMaxBytes, SymbolicLinks::kRefuse));
  return ParseDeviceProfile(text, path);
}

// Returns the result of `find` for the first directory where it succeeds; else NOT_FOUND with the
// reason for each. A directory without `file` is not tried.
StatusOr<v1::DeviceProfile> FindFirst(
    FileSystem& files, const std::vector<std::string>& directories, const std::string& file,
    const std::function<StatusOr<v1::DeviceProfile>(const std::string&)>& find) {
  std::string reasons;
  for (const std::string& directory : directories) {
    if (directory.empty()) continue;
    std::string reason = "none in " + directory;
    if (files.Stat(JoinPath(directory, file), SymbolicLinks::kFollow).ok()) {
      auto profile = find(directory);
      if (profile.ok()) return profile;
      reason = Message(profile.status());
    }
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  return NotFound("no profile of these devices has been measured yet ({})", reasons);
}

}  // namespace

StatusOr<v1::DeviceProfile> MeasureProfile(const HostPeak& peak, int devices,
                                           const AttainedRatesOptions& rates) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<v1::Device> probed, ProbeCpuDevices(devices, peak));
  TROUPE_ASSIGN_OR_RETURN(const AttainedRates attained, MeasureAttainedRates(peak, devices, rates));
  TROUPE_ASSIGN_OR_RETURN(const v1::LinkProfile link, MeasureLink(&OnTheHost, kLargeOnTheHost));
  v1::DeviceProfile profile;
  profile.set_name(fmt::format("{}, one of {} devices", probed[0].kind().model(), devices));
  profile.set_device_model(probed[0].kind().model());
  profile.set_memory_bytes(probed[0].memory_bytes());
  profile.set_float32_flops_per_second(peak.float32 / devices);
  profile.set_bfloat16_flops_per_second(peak.bfloat16 / devices);
  profile.set_matmul_efficiency(attained.matmuls);
  profile.set_attention_efficiency(attained.attention);
  profile.set_memory_bytes_per_second(MemoryRate() / devices);
  profile.set_launch_seconds(LaunchSeconds());
  profile.set_devices_per_island(devices);
  *profile.mutable_island() = link;
  *profile.mutable_fabric() = link;
  profile.set_transfers_need_cores(true);
  return profile;
}

StatusOr<v1::DeviceProfile> MeasureDeviceProfile(const std::vector<v1::Device>& devices,
                                                 const MakeDeviceBackend& make,
                                                 const DeviceProfileOptions& options) {
  const v1::Device& device = devices.at(0);
  TROUPE_ASSIGN_OR_RETURN(const auto backend, make(0, nullptr));
  TROUPE_ASSIGN_OR_RETURN(const kernels::BackendRates rates,
                          kernels::MeasureBackendRates(*backend, options.rates));
  TROUPE_ASSIGN_OR_RETURN(const v1::LinkProfile link,
                          devices.size() > 1 ? MeasureLink(OnDevices(make), options.large_bytes)
                                             : MeasureLink(&OnTheHost, kLargeOnTheHost));
  const auto known_or = [](double known, double measured) { return known > 0 ? known : measured; };
  const double peak = known_or(device.peak_flops_bfloat16(), rates.bfloat16_matmuls);
  v1::DeviceProfile profile;
  profile.set_name(DeviceProfileName(devices));
  profile.set_device_model(device.kind().model());
  profile.set_memory_bytes(device.memory_bytes());
  profile.set_float32_flops_per_second(
      known_or(device.peak_flops_float32(), rates.float32_matmuls));
  profile.set_bfloat16_flops_per_second(peak);
  profile.set_matmul_efficiency(std::min(1.0, rates.bfloat16_matmuls / peak));
  profile.set_attention_efficiency(std::min(1.0, rates.attention / peak));
  profile.set_memory_bytes_per_second(rates.bytes);
  profile.set_launch_seconds(rates.launch_seconds);
  profile.set_devices_per_island(static_cast<int>(devices.size()));
  *profile.mutable_island() = link;
  *profile.mutable_fabric() = link;
  return profile;
}

std::string DeviceProfileName(const std::vector<v1::Device>& devices) {
  return fmt::format("{}, one of {} devices, {}", devices.at(0).kind().model(), devices.size(),
                     devices.at(0).kind().versions());
}

StatusOr<v1::DeviceProfile> FindDeviceProfile(FileSystem& files,
                                              const std::vector<std::string>& directories,
                                              const std::vector<v1::Device>& devices) {
  const std::string name = DeviceProfileName(devices);
  const auto find = [&](const std::string& directory) -> StatusOr<v1::DeviceProfile> {
    const std::string path = JoinPath(directory, kDeviceProfileFile);
    TROUPE_ASSIGN_OR_RETURN(v1::DeviceProfile read, ReadProfile(files, path));
    if (read.name() == name) return read;
    return NotFound("{} is the profile of \"{}\", not of \"{}\"", path, read.name(), name);
  };
  return FindFirst(files, directories, kDeviceProfileFile, find);
}

std::string ToYaml(const v1::DeviceProfile& profile) {
  const auto link = [](const v1::LinkProfile& of) {
    return fmt::format("{{bytes_per_second: {:.4e}, latency_seconds: {:.3e}}}",
                       of.bytes_per_second(), of.latency_seconds());
  };
  return fmt::format(
      "name: \"{}\"\nmemory_bytes: {}\nfloat32_flops_per_second: {:.4e}\n"
      "bfloat16_flops_per_second: {:.4e}\nmatmul_efficiency: {:.3g}\nattention_efficiency: "
      "{:.3g}\n"
      "memory_bytes_per_second: {:.4e}\nlaunch_seconds: {:.3e}\ndevices_per_island: {}\nisland: "
      "{}\n"
      "# One host cannot measure a fabric: these are the island's figures.\nfabric: {}\n"
      "transfers_need_cores: {}\n",
      profile.name(), profile.memory_bytes(), profile.float32_flops_per_second(),
      profile.bfloat16_flops_per_second(), profile.matmul_efficiency(),
      AttentionEfficiency(profile), profile.memory_bytes_per_second(), profile.launch_seconds(),
      profile.devices_per_island(), link(profile.island()), link(profile.fabric()),
      profile.transfers_need_cores());
}

StatusOr<v1::DeviceProfile> FindProfile(FileSystem& files,
                                        const std::vector<std::string>& directories, int devices) {
  const auto find = [&](const std::string& directory) -> StatusOr<v1::DeviceProfile> {
    TROUPE_RETURN_IF_ERROR(ReadMeasuredPeak(files, directory).status());
    const std::string path = JoinPath(directory, kProfileFile);
    TROUPE_ASSIGN_OR_RETURN(v1::DeviceProfile read, ReadProfile(files, path));
    if (read.devices_per_island() == devices) return read;
    return NotFound("{} was measured on a host with {} devices, not {}", path,
                    read.devices_per_island(), devices);
  };
  return FindFirst(files, directories, kProfileFile, find);
}

}  // namespace troupe
