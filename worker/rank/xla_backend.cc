#include "worker/rank/xla_backend.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/flag_parser.h"
#include "kernels/xla/pjrt/compile_options.h"
#include "kernels/xla/pjrt/plugin_path.h"
#include "kernels/xla/pjrt/topology.h"
#include "kernels/xla/runtime/executable_cache.h"
#include "kernels/xla/runtime/xla_backend.h"
#include "plan/device/tpu_slice.h"
#include "worker/rank/tpu_chips.h"

namespace troupe {
namespace {

using kernels::xla::Client;
using kernels::xla::ExecutableCache;
using kernels::xla::ProgramCache;
using kernels::xla::Topology;
using kernels::xla::XlaBackend;

constexpr std::string_view kProcessors = "cpu", kTpus = "tpu";  // platforms of plugins

std::optional<TpuChips> ChipsOfHost() {
  return FindTpuChips(kernels::xla::PciDevices(kernels::xla::kPciFolder));
}

// Makes the client of a process that uses one device: chip `device` of a host with TPUs.
StatusOr<std::unique_ptr<Client>> MakeClient(int device, int threads) {
  TROUPE_ASSIGN_OR_RETURN(const std::string path, kernels::xla::FindPlugin(""));
  // libtpu reads its variables when it is loaded.
  if (ChipsOfHost().has_value()) {
    for (const auto& [name, value] : OneChipEnvironment(device))
      setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
  }
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Make(path, threads));
  const std::string& platform = client->plugin().platform;
  if (platform == kProcessors) return client;
  if (platform != kTpus) {
    return Unimplemented(
        "the plugin {} is of platform \"{}\": only \"{}\" and \"{}\" are supported", path, platform,
        kProcessors, kTpus);
  }
  if (const size_t devices = client->devices().size(); devices != 1) {
    return FailedPrecondition("the plugin {} has {} devices in the process of a rank, not one",
                              path, devices);
  }
  return client;
}

v1::DeviceKind KindOf(const kernels::xla::PluginFacts& plugin, const std::string& model) {
  v1::DeviceKind kind;
  kind.set_kind("xla");
  kind.set_model(model);
  kind.set_kernel_level(plugin.platform);
  kind.set_versions(fmt::format("PJRT {}.{}; {}; troupe {}", plugin.api_major, plugin.api_minor,
                                plugin.platform_version, kVersion));
  return kind;
}

// Describes the chips by their smallest slice: a client would keep ranks from them.
StatusOr<XlaDevices> ProbeTpus(const TpuChips& chips, int count) {
  TROUPE_ASSIGN_OR_RETURN(const std::string path, kernels::xla::FindPlugin(""));
  TROUPE_ASSIGN_OR_RETURN(const std::string slice, SliceFor(*chips.model, 1));
  TROUPE_ASSIGN_OR_RETURN(
      const auto topology,
      Topology::Make(path, fmt::format("{}:{}", chips.model->generation, slice)));
  XlaDevices devices;
  devices.kind = KindOf(topology->plugin(), topology->devices().front().kind);
  TROUPE_ASSIGN_OR_RETURN(devices.tpus, TpuDevices(chips, devices.kind, count));
  return devices;
}

}  // namespace

StatusOr<std::unique_ptr<kernels::Backend>> MakeXlaRankBackend(const RankBackendOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Client> client,
                          MakeClient(options.device, options.threads));
  std::unique_ptr<ExecutableCache> executables;
  if (options.files != nullptr && !options.executable_folder.empty()) {
    executables = std::make_unique<ExecutableCache>(*options.files, options.executable_folder,
                                                    kernels::xla::kMostExecutableBytes);
  }
  auto programs = std::make_unique<ProgramCache>(
      *client, kernels::xla::ParseOptionTexts(options.compiler_options), std::move(executables));
  // Each rank's process has a client of its own with one device.
  return XlaBackend::Make(std::move(client), std::move(programs), {.threads = options.threads});
}

StatusOr<XlaDevices> ProbeXlaDevices(int count) {
  if (const auto chips = ChipsOfHost(); chips.has_value()) return ProbeTpus(*chips, count);
  const auto client = MakeClient(0, 1);
  if (!client.ok())
    return Unavailable("no device of XLA can be used: {}", Message(client.status()));
  return XlaDevices{.kind = KindOf((*client)->plugin(), (*client)->devices()[0].kind)};
}

}  // namespace troupe
