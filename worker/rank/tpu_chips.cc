#include "worker/rank/tpu_chips.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/flag_parser.h"

namespace troupe {
namespace {

constexpr int kFirstPort = 8476;  // libtpu's default; the processes of a host's chips follow it
constexpr const char kHostNames[] = "TPU_WORKER_HOSTNAMES", kHostNumber[] = "TPU_WORKER_ID",
                     kHosts[] = "TPU_HOST_BOUNDS", kChips[] = "TPU_CHIPS_PER_HOST_BOUNDS";

int Product(const TpuBounds& bounds) { return bounds[0] * bounds[1] * bounds[2]; }

std::string TextOf(const TpuBounds& bounds) { return fmt::format("{}", fmt::join(bounds, ",")); }

std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Parses bounds such as "2,2,1".
StatusOr<TpuBounds> ParseBounds(const char* name, const std::string& text) {
  const std::vector<std::string> parts = Split(text);
  TpuBounds bounds{};
  bool valid = parts.size() == bounds.size();
  for (size_t axis = 0; valid && axis < bounds.size(); ++axis) {
    const StatusOr<int> extent = ParseNumber<int>(name, parts[axis], {1, 1024});
    valid = extent.ok();
    if (valid) bounds[axis] = *extent;
  }
  if (valid) return bounds;
  return FailedPrecondition("{} is \"{}\", which is not X,Y,Z with numbers from 1 to 1024", name,
                            text);
}

// The chips of a host whose environment does not state them. Hosts have one, two, four or eight.
TpuBounds UsualChips(int count) {
  switch (count) {
    case 2:
      return {1, 2, 1};
    case 4:
      return {2, 2, 1};
    case 8:
      return {2, 4, 1};
    default:
      return {count, 1, 1};
  }
}

// The place with this number in bounds, where x varies fastest.
TpuBounds PlaceOf(int number, const TpuBounds& bounds) {
  return {number % bounds[0], number / bounds[0] % bounds[1], number / (bounds[0] * bounds[1])};
}

// "10.0.0.1:8476" or, as GKE writes it, "host:port:address" has the host's name first.
std::string HostName(const std::string& address) { return address.substr(0, address.find(':')); }

}  // namespace

std::optional<TpuChips> FindTpuChips(std::span<const kernels::xla::PciDevice> devices) {
  TpuChips chips;
  for (const kernels::xla::PciDevice& device : devices) {
    if (device.vendor != kernels::xla::kPciVendorGoogle) continue;
    const TpuModel* const model = FindTpuModelOfPci(device.device);
    if (model == nullptr) continue;
    chips.model = model;
    ++chips.count;
  }
  return chips.count > 0 ? std::optional(chips) : std::nullopt;
}

StatusOr<TpuHost> FindTpuHost(const TpuChips& chips, const std::string& host_name,
                              const FindVariable& find) {
  TpuHost host{
      .slice = host_name, .address = "localhost", .chips = UsualChips(chips.count), .position = {}};
  if (const auto text = find(kChips); text.has_value()) {
    TROUPE_ASSIGN_OR_RETURN(host.chips, ParseBounds(kChips, *text));
    if (Product(host.chips) != chips.count) {
      return FailedPrecondition("{} is \"{}\", which is {} chips, but the host has {}", kChips,
                                *text, Product(host.chips), chips.count);
    }
  }
  const std::vector<std::string> names = Split(find(kHostNames).value_or(""));
  if (names.size() == 1) return host;
  const std::string number_text = find(kHostNumber).value_or(""),
                    hosts_text = find(kHosts).value_or("");
  TROUPE_ASSIGN_OR_RETURN(const TpuBounds hosts, ParseBounds(kHosts, hosts_text));
  if (Product(hosts) != std::ssize(names)) {
    return FailedPrecondition("{} is \"{}\", which is {} hosts, but {} has {} names", kHosts,
                              hosts_text, Product(hosts), kHostNames, names.size());
  }
  const StatusOr<int> number =
      ParseNumber<int>(kHostNumber, number_text, {0, static_cast<int>(names.size()) - 1});
  if (!number.ok()) {
    return FailedPrecondition("{} is \"{}\", not a number from 0 to {}, one less than {} has names",
                              kHostNumber, number_text, names.size() - 1, kHostNames);
  }
  host.slice = HostName(names.front());
  host.address = HostName(names[static_cast<size_t>(*number)]);
  host.position = PlaceOf(*number, hosts);
  return host;
}

StatusOr<std::vector<v1::Device>> TpuDevices(const TpuChips& chips, const TpuHost& host,
                                             const v1::DeviceKind& kind, int count) {
  const TpuModel& model = *chips.model;
  if (model.devices_per_chip > 1) {
    return Unimplemented(
        "a chip of {} has {} devices, which belong to one process: ranks, which have one device "
        "each, cannot share it",
        model.model, model.devices_per_chip);
  }
  if (count > chips.count) {
    return InvalidArgument("{} devices of XLA are asked for, and this host has {} of {}", count,
                           chips.count, model.model);
  }
  std::vector<v1::Device> devices(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    v1::Device& device = devices[static_cast<size_t>(i)];
    device.set_index(i);
    *device.mutable_kind() = kind;
    device.set_memory_bytes(model.memory_bytes);
    device.set_peak_flops_bfloat16(model.bfloat16_flops_per_second);
    v1::TpuChip& chip = *device.mutable_chip();
    chip.set_slice(host.slice);
    chip.set_address(fmt::format("{}:{}", host.address, kFirstPort + i));
    const TpuBounds place = PlaceOf(i, host.chips);
    for (int axis = 0; axis < kTpuAxes; ++axis) {
      chip.add_position(host.position[axis] * host.chips[axis] + place[axis]);
      chip.add_host_chips(host.chips[axis]);
    }
  }
  return devices;
}

std::optional<ChipProcess> ChipProcessOf(const v1::Plan& plan, int rank) {
  const v1::RankPlacement& own = plan.ranks(rank);
  if (!own.has_slice_process()) return std::nullopt;
  ChipProcess of{.chip = own.device(), .process = own.slice_process(), .addresses = {}};
  std::map<int, std::string> addresses;  // by task
  for (const v1::RankPlacement& placement : plan.ranks()) {
    if (placement.coordinates().pipe() != own.coordinates().pipe()) continue;
    addresses[placement.slice_process().task()] = placement.slice_process().address();
  }
  for (const auto& [task, address] : addresses) of.addresses.push_back(address);
  return of;
}

std::map<std::string, std::optional<std::string>> ChipEnvironment(const ChipProcess& of) {
  const v1::SliceProcess& process = of.process;
  const std::string& own = process.address();
  // The hosts of the slice, as a machine of their number would describe itself. Their order is that
  // of their first processes.
  TpuBounds hosts{}, chips{};
  for (int axis = 0; axis < kTpuAxes; ++axis) {
    chips[axis] = process.host_bounds(axis);
    hosts[axis] = process.bounds(axis) / process.host_bounds(axis);
  }
  std::vector<std::string> names;
  for (const std::string& address : of.addresses) {
    if (std::ranges::find(names, HostName(address)) == names.end())
      names.push_back(HostName(address));
  }
  const auto host = std::ranges::find(names, HostName(own)) - names.begin();
  return {{"TPU_VISIBLE_CHIPS", std::to_string(of.chip)},
          {"TPU_CHIPS_PER_PROCESS_BOUNDS", "1,1,1"},
          {"TPU_PROCESS_BOUNDS", fmt::format("{}", fmt::join(process.bounds(), ","))},
          {"TPU_PROCESS_ADDRESSES", fmt::format("{}", fmt::join(of.addresses, ","))},
          {"TPU_PROCESS_PORT", own.substr(own.rfind(':') + 1)},
          {"CLOUD_TPU_TASK_ID", std::to_string(process.task())},
          {kHosts, TextOf(hosts)},
          {kChips, TextOf(chips)},
          {kHostNames, fmt::format("{}", fmt::join(names, ","))},
          {kHostNumber, std::to_string(host)},
          {"TPU_TOPOLOGY", std::nullopt},
          {"TPU_TOPOLOGY_ALT", std::nullopt},
          {"TPU_TOPOLOGY_WRAP", std::nullopt}};
}

}  // namespace troupe
