#include "plan/device/compiler_options.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "model/program/exact_number_options.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

v1::DeviceKind Kind(const std::string& model) {
  v1::DeviceKind kind;
  kind.set_kind("xla");
  kind.set_model(model);
  kind.set_kernel_level(model == "cpu" ? "cpu" : "tpu");
  return kind;
}

v1::XlaSpec Groups(std::initializer_list<const char*> names) {
  v1::XlaSpec xla;
  for (const char* const name : names) xla.add_option_groups(name);
  return xla;
}

std::vector<std::string> Resolved(const v1::XlaSpec& xla, const v1::DeviceKind& kind) {
  const auto options = ResolveCompilerOptions(xla, kind);
  EXPECT_TRUE(options.ok()) << ToString(options.status());
  return options.ok() ? *options : std::vector<std::string>();
}

TEST(CompilerOptions, NumbersAreExactWhereNothingIsStated) {
  EXPECT_THAT(Resolved({}, Kind("cpu")),
              ElementsAre("xla_allow_excess_precision=false", "xla_cpu_enable_fast_math=false",
                          "xla_cpu_enable_fast_min_max=false", "xla_cpu_use_xnnpack=false"));
  EXPECT_THAT(Resolved({}, Kind("TPU v6 lite")), ElementsAre("xla_allow_excess_precision=false"));
}

TEST(CompilerOptions, AGroupHasTheOptionsOfTheKindOfDevice) {
  EXPECT_THAT(Resolved(Groups({"fast_compile"}), Kind("cpu")),
              testing::IsSupersetOf(
                  {"xla_backend_optimization_level=0", "xla_cpu_use_fusion_emitters=false"}));
  EXPECT_THAT(Resolved(Groups({"scoped_memory_dense", "launch_barrier"}), Kind("TPU v6 lite")),
              ElementsAre("xla_allow_excess_precision=false", "xla_tpu_scoped_vmem_limit_kib=98304",
                          "xla_tpu_use_enhanced_launch_barrier=true"));
}

TEST(CompilerOptions, ASingleOptionReplacesThatOfAGroup) {
  v1::XlaSpec xla = Groups({"scoped_memory_dense"});
  xla.add_options("xla_tpu_scoped_vmem_limit_kib=65536");
  xla.add_options("xla_latency=2");
  EXPECT_THAT(Resolved(xla, Kind("TPU v6 lite")),
              ElementsAre("xla_allow_excess_precision=false", "xla_latency=2",
                          "xla_tpu_scoped_vmem_limit_kib=65536"));
}

TEST(CompilerOptions, AKindThatLacksAGroupIsRefusedWithItsGroups) {
  const Status status =
      ResolveCompilerOptions(Groups({"sparse_core_offload"}), Kind("TPU v5 lite")).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status),
              HasSubstr("xla.option_groups has \"sparse_core_offload\", which devices of kind "
                        "\"TPU v5 lite\" lack; their groups are scoped_memory_dense, "));
  EXPECT_THAT(Message(ResolveCompilerOptions(Groups({"sdc_checker"}), Kind("abacus")).status()),
              HasSubstr("their groups are none"));
}

TEST(CompilerOptions, DevicesWithoutACompilerHaveNone) {
  v1::DeviceKind cuda;
  cuda.set_kind("cuda");
  cuda.set_model("NVIDIA H200");
  EXPECT_THAT(Resolved(Groups({"sdc_checker"}), cuda), IsEmpty());
  EXPECT_THAT(Resolved(Groups({"sdc_checker"}), Kind("")), IsEmpty()) << "an imagined device";
}

TEST(CompilerOptions, TheTableIsSound) {
  std::map<std::pair<std::string_view, std::string_view>, std::string_view> rows;
  for (const CompilerOptionGroup& group : CompilerOptionGroups()) {
    EXPECT_FALSE(group.effect.empty()) << group.name;
    EXPECT_FALSE(group.kinds.empty()) << group.name;
    for (const std::string_view kind : group.kinds)
      EXPECT_TRUE(rows.emplace(std::pair(group.name, kind), group.name).second) << "twice";
    std::set<std::string_view> names;
    for (const std::string_view option : group.options) {
      EXPECT_TRUE(names.insert(NameOfOption(option)).second) << option;
      EXPECT_LT(NameOfOption(option).size() + 1, option.size()) << option;
      EXPECT_EQ(std::ranges::count(model::kExactNumberOptions, NameOfOption(option),
                                   &model::ExactNumberOption::name),
                0)
          << option;
    }
    EXPECT_THAT(KnownCompilerOptionGroups(), HasSubstr(std::string(group.name)));
    // Each group alone can be resolved for each of its kinds.
    for (const std::string_view kind : group.kinds) {
      EXPECT_THAT(Resolved(Groups({std::string(group.name).c_str()}), Kind(std::string(kind))),
                  testing::IsSupersetOf(group.options.begin(), group.options.end()));
    }
  }
}

TEST(CompilerOptions, ThePageHasTheTable) {
  std::ifstream file("docs/xla.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const CompilerOptionGroup& group : CompilerOptionGroups()) {
    EXPECT_THAT(page, HasSubstr(fmt::format("| `{}` | {} | {} | `{}` |\n", group.name,
                                            fmt::join(group.kinds, ", "), group.effect,
                                            fmt::join(group.options, "`, `"))));
  }
}

}  // namespace
}  // namespace troupe
