#include "plan/device/compiler_options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/program/exact_number_options.h"
#include "plan/device/device_traits.h"

namespace troupe {
namespace {

using Names = std::vector<std::string_view>;

constexpr std::string_view kCpu[] = {"cpu"};
constexpr std::string_view kTpus[] = {"TPU v4", "TPU v5 lite", "TPU v5", "TPU v6 lite", "TPU7x"};
// The kinds whose vector memory holds more than the limits of the groups below.
constexpr std::string_view kLargeVectorMemory[] = {"TPU v5 lite", "TPU v5", "TPU v6 lite"};
constexpr std::string_view kFusedCollectives[] = {"TPU v5 lite"};
constexpr std::string_view kSparseCores[] = {"TPU v5", "TPU v6 lite", "TPU7x"};
constexpr std::string_view kReduceScatterLayouts[] = {"TPU v5", "TPU v6 lite"};

constexpr std::string_view kFastCompile[] = {"xla_backend_optimization_level=0",
                                             "xla_cpu_use_fusion_emitters=false"};
constexpr std::string_view kDenseMemory[] = {"xla_tpu_scoped_vmem_limit_kib=98304"};
constexpr std::string_view kMoeMemory[] = {"xla_tpu_scoped_vmem_limit_kib=81920"};
constexpr std::string_view kFusion[] = {
    "xla_tpu_enable_async_collective_fusion=true",
    "xla_tpu_enable_async_collective_fusion_fuse_all_gather=true",
    "xla_tpu_enable_async_collective_fusion_multiple_steps=true",
    "xla_tpu_overlap_compute_collective_tc=true"};
constexpr std::string_view kOffload[] = {
    "xla_sc_disable_megacore_partitioning=true",
    "xla_tpu_enable_async_collective_fusion_fuse_all_gather=false",
    "xla_tpu_enable_async_collective_fusion_fuse_all_reduce=false",
    "xla_tpu_enable_async_collective_fusion_fuse_reduce_scatter=false",
    "xla_tpu_enable_sparse_core_collective_offload_all_gather=true",
    "xla_tpu_enable_sparse_core_collective_offload_all_reduce=true",
    "xla_tpu_enable_sparse_core_collective_offload_reduce_scatter=true",
    "xla_tpu_use_tc_device_shape_on_sc=true"};
constexpr std::string_view kLayout[] = {
    "xla_tpu_assign_all_reduce_scatter_layout=true",
    "xla_tpu_relayout_group_size_threshold_for_reduce_scatter=1",
    "xla_tpu_use_minor_sharding_for_major_trivial_input=true"};
constexpr std::string_view kDataOverlap[] = {"xla_tpu_data_parallel_opt_different_sized_ops=true",
                                             "xla_tpu_enable_data_parallel_all_reduce_opt=true"};
constexpr std::string_view kChecker[] = {
    "xla_tpu_enable_sdc_checker=true", "xla_tpu_sdc_check_halt_on_detection=true",
    "xla_tpu_sdc_check_repeat_count=5", "xla_tpu_sdc_replicate_llo=true"};
constexpr std::string_view kBarrier[] = {"xla_tpu_use_enhanced_launch_barrier=true"};

// Each option was accepted by libtpu 0.0.52 for each of its kinds. TPU v5 is v5p, TPU v5 lite v5e,
// TPU v6 lite v6e. Limits, layouts and overlaps are those of MaxText's benchmarks.
constexpr CompilerOptionGroup kGroups[] = {
    {"fast_compile", "compiles several times faster; steps are slower", kCpu, kFastCompile},
    {"scoped_memory_dense", "lets an operation of a dense model use more vector memory",
     kLargeVectorMemory, kDenseMemory},
    {"scoped_memory_moe", "the same for a mixture of experts", kLargeVectorMemory, kMoeMemory},
    {"collective_fusion", "runs an all-gather inside the computation that it overlaps with",
     kFusedCollectives, kFusion},
    {"sparse_core_offload", "runs collectives on the SparseCores, asynchronously", kSparseCores,
     kOffload},
    {"reduce_scatter_layout",
     "chooses the layout of a reduced gradient so that it is cut without "
     "a copy",
     kReduceScatterLayouts, kLayout},
    {"data_parallel_overlap", "overlaps all-reduces over data-parallel slices with computation",
     kTpus, kDataOverlap},
    {"sdc_checker", "repeats computations and stops where results differ: silent data corruption",
     kTpus, kChecker},
    {"launch_barrier", "checks that all chips of a slice start the same program", kTpus, kBarrier},
};

bool IsFor(const CompilerOptionGroup& group, std::string_view kind) {
  return std::ranges::count(group.kinds, kind) > 0;
}

std::string Text(const Names& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

Names GroupsOf(std::string_view kind) {
  Names names;
  for (const CompilerOptionGroup& group : kGroups) {
    if (IsFor(group, kind)) names.push_back(group.name);
  }
  return names;
}

// The options that groups give to devices of one kind.
class GroupOptions {
 public:
  explicit GroupOptions(std::string_view kind) : kind_(kind) {}

  // Adds those of the group `name`. FAILED_PRECONDITION if the kind lacks it, INVALID_ARGUMENT if
  // another group states one of its options differently.
  Status Add(std::string_view name) {
    const auto* const group = std::ranges::find_if(kGroups, [&](const CompilerOptionGroup& each) {
      return each.name == name && IsFor(each, kind_);
    });
    if (group == std::end(kGroups)) {
      return FailedPrecondition(
          "xla.option_groups has \"{}\", which devices of kind \"{}\" lack; their groups are {}",
          name, kind_, Text(GroupsOf(kind_)));
    }
    for (const std::string_view option : group->options) {
      const auto [found, is_new] = options_.emplace(NameOfOption(option), Stated{option, name});
      if (is_new || found->second.option == option) continue;
      return InvalidArgument(
          "xla.option_groups has \"{}\" and \"{}\", which state different values: {} and {}",
          found->second.group, name, found->second.option, option);
    }
    return OkStatus();
  }

  Status AddAll(const v1::XlaSpec& xla) {
    for (const std::string& name : xla.option_groups()) TROUPE_RETURN_IF_ERROR(Add(name));
    return OkStatus();
  }

  // By name: "NAME" → "NAME=VALUE".
  std::map<std::string_view, std::string> List() const {
    std::map<std::string_view, std::string> list;
    for (const auto& [name, stated] : options_) list[name] = stated.option;
    return list;
  }

 private:
  struct Stated {
    std::string_view option, group;
  };
  const std::string_view kind_;
  std::map<std::string_view, Stated> options_;
};

}  // namespace

std::span<const CompilerOptionGroup> CompilerOptionGroups() { return kGroups; }

std::string_view NameOfOption(std::string_view option) {
  return option.substr(0, option.find('='));
}

StatusOr<std::vector<std::string>> ResolveCompilerOptions(const v1::XlaSpec& xla,
                                                          const v1::DeviceKind& kind) {
  const DeviceTraits* const traits = FindDeviceTraits(kind.kind());
  if (traits == nullptr || !traits->compiles_programs || kind.model().empty())
    return std::vector<std::string>();
  GroupOptions groups(kind.model());
  TROUPE_RETURN_IF_ERROR(groups.AddAll(xla));
  std::map<std::string_view, std::string> options = groups.List();
  for (const std::string& option : xla.options()) options[NameOfOption(option)] = option;
  for (const model::ExactNumberOption& exact : model::kExactNumberOptions) {
    if (!exact.platform.empty() && exact.platform != kind.kernel_level()) continue;
    options[exact.name] = fmt::format("{}=false", exact.name);
  }
  std::vector<std::string> list;
  for (auto& [name, option] : options) list.push_back(std::move(option));
  return list;
}

std::string WhyNoDeviceHasGroups(const v1::XlaSpec& xla) {
  if (xla.option_groups().empty()) return "";
  std::set<std::string_view> kinds;
  for (const CompilerOptionGroup& group : kGroups)
    kinds.insert(group.kinds.begin(), group.kinds.end());
  std::vector<std::string> lacking;
  for (const std::string_view kind : kinds) {
    const Status status = GroupOptions(kind).AddAll(xla);
    // Groups that contradict each other do so on every kind that has both.
    if (status.ok() || status.code() == StatusCode::kInvalidArgument)
      return std::string(Message(status));
    lacking.push_back(fmt::format("{}: {}", kind, Text(GroupsOf(kind))));
  }
  return fmt::format("no kind of device has all of these groups; they are {}",
                     fmt::join(lacking, "; "));
}

std::string KnownCompilerOptionGroups() {
  Names names;
  for (const CompilerOptionGroup& group : kGroups) {
    if (std::ranges::count(names, group.name) == 0) names.push_back(group.name);
  }
  return Text(names);
}

}  // namespace troupe
