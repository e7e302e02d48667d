#include "worker/rank/xla_backend.h"

#include <sys/utsname.h>

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
#include "worker/rank/slice_devices.h"
#include "worker/rank/tpu_chips.h"

namespace troupe {
namespace {

using kernels::xla::Client;
using kernels::xla::ExecutableCache;
using kernels::xla::ProgramCache;
using kernels::xla::Topology;
using kernels::xla::XlaBackend;
using kernels::xla::XlaOptions;

constexpr std::string_view kProcessors = "cpu", kTpus = "tpu";  // platforms of plugins

std::optional<std::string> Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<TpuChips> ChipsOfHost() {
  return FindTpuChips(kernels::xla::PciDevices(kernels::xla::kPciFolder));
}

// Makes the client of a process that has one device; `chip`: where it is a chip of a TPU.
StatusOr<std::unique_ptr<Client>> MakeClient(const std::optional<ChipProcess>& chip, int threads) {
  TROUPE_ASSIGN_OR_RETURN(const std::string path, kernels::xla::FindPlugin(""));
  // libtpu reads its variables when it is loaded.
  if (chip.has_value()) {
    for (const auto& [name, value] : ChipEnvironment(*chip)) {
      if (value.has_value()) {
        setenv(name.c_str(), value->c_str(), /*overwrite=*/1);
      } else {
        unsetenv(name.c_str());
      }
    }
  }
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Make(path, threads));
  const std::string& platform = client->plugin().platform;
  if (platform == kProcessors || platform == kTpus) return client;
  return Unimplemented("the plugin {} is of platform \"{}\": only \"{}\" and \"{}\" are supported",
                       path, platform, kProcessors, kTpus);
}

// Returns the options of a rank with its slice: its device alone, or those of all ranks of its
// stage, which then exchange their devices.
StatusOr<XlaOptions> OptionsOf(const RankBackendOptions& options, const Client& client) {
  XlaOptions xla;
  xla.threads = options.threads;
  const RankPeers& peers = options.peers;
  if (peers.plan == nullptr) return xla;
  xla.use = {.single_microbatch = peers.plan->schedule().microbatches() == 1,
             .reads_gradients = options.reads_gradients,
             .evaluates = options.evaluates};
  if (!peers.plan->ranks(peers.rank).has_slice_process()) {
    if (client.plugin().platform == kTpus)
      return FailedPrecondition("the plan gives rank {} no chip of a TPU", peers.rank);
    return xla;
  }
  const std::vector<int> ranks = RanksOfStage(*peers.plan, peers.rank);
  TROUPE_ASSIGN_OR_RETURN(v1::RankDevice own, OwnDevice(client.devices(), std::ssize(ranks)));
  if (ranks.size() == 1) return xla;
  TROUPE_ASSIGN_OR_RETURN(const std::vector<v1::RankDevice> book,
                          peers.exchange_devices(std::move(own)));
  TROUPE_ASSIGN_OR_RETURN(xla.slice.devices, DevicesOfRanks(client.devices(), book, ranks));
  if (std::string misplaced = MisplacedChips(*peers.plan, book, ranks); !misplaced.empty())
    xla.fallbacks.push_back(std::move(misplaced));
  std::vector<model::Program> programs;
  for (const int rank : ranks) {
    if (rank == peers.rank) xla.slice.partition = static_cast<int>(programs.size());
    TROUPE_ASSIGN_OR_RETURN(model::Program program, peers.make_program(rank));
    programs.push_back(std::move(program));
  }
  xla.slice.programs = std::make_shared<const std::vector<model::Program>>(std::move(programs));
  return xla;
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
StatusOr<std::unique_ptr<Topology>> SmallestSlice(const TpuChips& chips) {
  TROUPE_ASSIGN_OR_RETURN(const std::string path, kernels::xla::FindPlugin(""));
  TROUPE_ASSIGN_OR_RETURN(const std::string slice, SliceFor(*chips.model, 1));
  return Topology::Make(path, fmt::format("{}:{}", chips.model->generation, slice));
}

StatusOr<XlaDevices> ProbeTpus(const TpuChips& chips, int count) {
  const auto topology = SmallestSlice(chips);
  if (!topology.ok()) {
    return Unavailable(
        "no device of XLA can be used: the plugin of this host's {} chips of {} is libtpu, and "
        "TROUPE_XLA_PLUGIN must be set to the path of libtpu.so in the worker's environment: {}",
        chips.count, chips.model->model, Message(topology.status()));
  }
  XlaDevices devices;
  devices.kind = KindOf((*topology)->plugin(), (*topology)->devices().front().kind);
  utsname host{};
  uname(&host);
  TROUPE_ASSIGN_OR_RETURN(const TpuHost place, FindTpuHost(chips, host.nodename, Variable));
  TROUPE_ASSIGN_OR_RETURN(devices.tpus, TpuDevices(chips, place, devices.kind, count));
  return devices;
}

}  // namespace

StatusOr<std::unique_ptr<kernels::Backend>> MakeXlaRankBackend(const RankBackendOptions& options) {
  const v1::Plan* const plan = options.peers.plan;
  if (plan == nullptr && HostHasTpus())
    return Unimplemented("only a rank of a job opens a chip of a TPU");
  const std::optional<ChipProcess> chip =
      plan == nullptr ? std::nullopt : ChipProcessOf(*plan, options.peers.rank);
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Client> client, MakeClient(chip, options.threads));
  return MakeXlaRankBackend(options, std::move(client));
}

StatusOr<std::unique_ptr<kernels::Backend>> MakeXlaRankBackend(const RankBackendOptions& options,
                                                               std::unique_ptr<Client> client) {
  TROUPE_ASSIGN_OR_RETURN(const XlaOptions xla, OptionsOf(options, *client));
  std::unique_ptr<ExecutableCache> executables;
  if (options.files != nullptr && !options.executable_folder.empty()) {
    executables = std::make_unique<ExecutableCache>(*options.files, options.executable_folder,
                                                    kernels::xla::kMostExecutableBytes);
  }
  auto programs = std::make_unique<ProgramCache>(
      *client, kernels::xla::ParseOptionTexts(options.compiler_options), std::move(executables));
  return XlaBackend::Make(std::move(client), std::move(programs), xla);
}

bool HostHasTpus() { return ChipsOfHost().has_value(); }

StatusOr<XlaDevices> ProbeXlaDevices(int count) { return ProbeXlaDevices(count, ChipsOfHost()); }

StatusOr<XlaDevices> ProbeXlaDevices(int count, const std::optional<TpuChips>& chips) {
  if (chips.has_value()) return ProbeTpus(*chips, count);
  const auto client = MakeClient(std::nullopt, 1);
  if (!client.ok())
    return Unavailable("no device of XLA can be used: {}", Message(client.status()));
  return XlaDevices{.kind = KindOf((*client)->plugin(), (*client)->devices()[0].kind)};
}

}  // namespace troupe
