#include "kernels/xla/runtime/xla_backend.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/testing/test_extent.h"
#include "kernels/backend/plain_program.h"
#include "kernels/testing/collective_test.h"
#include "kernels/testing/kernel_test.h"
#include "kernels/xla/pjrt/plugin_path.h"
#include "kernels/xla/runtime/tpu_gate_test.h"
#include "kernels/xla/testing/recording_client.h"
#include "kernels/xla/testing/slice_backend.h"
#include "model/program/op_rules.h"

namespace troupe::kernels {
namespace {

using Made = StatusOr<std::unique_ptr<xla::Client>>;

// A process has one client of a plugin; an error where there is none. It is never destroyed: the
// plugin's own statics end before those of this program.
const Made& TheClient() {
  static const Made& client = *new Made([]() -> Made {
    TROUPE_ASSIGN_OR_RETURN(const std::string path, xla::FindPlugin(""));
    return xla::Client::Make(path, 1);
  }());
  return client;
}

// The gate of the programs of one rank; an error without libtpu. Never destroyed likewise.
const StatusOr<TpuGate*>& Gate() {
  static const auto& gate = *new StatusOr<TpuGate*>([]() -> StatusOr<TpuGate*> {
    TROUPE_ASSIGN_OR_RETURN(const std::string libtpu, xla::FindLibtpu());
    TROUPE_ASSIGN_OR_RETURN(auto tpu, xla::Topology::Make(libtpu, "v6e:1x1"));
    return new TpuGate(std::move(tpu));
  }());
  return gate;
}

xla::ProgramCache& Programs() {
  // Fast compilation: most of the time of these tests is the compiler's.
  static xla::Client& gated =
      Gate().ok() ? *new GatedClient(**TheClient(), **Gate()) : **TheClient();
  static xla::RecordingClient& client = *new xla::RecordingClient(gated, xla::RecordInFolder);
  static xla::ProgramCache& programs = *new xla::ProgramCache(
      client,
      {{"xla_backend_optimization_level", int64_t{0}}, {"xla_cpu_use_fusion_emitters", false}});
  return programs;
}

KernelSetting Setting(model::DType compute) {
  return {.name = model::Name(compute),
          .compute = compute,
          .make = []() -> std::unique_ptr<Backend> {
            auto backend = xla::XlaBackend::Make(Programs(), {});
            TROUPE_CHECK_OK(backend.status());
            if (!Gate().ok()) return *std::move(backend);
            return std::make_unique<GatedBackend>(*std::move(backend), **Gate());
          },
          .keeps_bits_in_company = false,
          .compiles_shapes = true};
}

// None without a plugin, and none with a sanitizer, which makes compilation several times slower:
// there, the stages of models (xla_layouts_test, xla_slices_test) lower their operations.
std::vector<KernelSetting> Settings() {
  if (!TheClient().ok() || kInstrumented) return {};
  return {Setting(model::DType::kFloat32), Setting(model::DType::kBFloat16)};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KernelTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CollectiveTest);
INSTANTIATE_TEST_SUITE_P(Xla, KernelTest, testing::ValuesIn(Settings()), NameOfSetting);
INSTANTIATE_TEST_SUITE_P(Xla, CollectiveTest, testing::ValuesIn(Settings()), NameOfSetting);

// The same collectives as parts of one program of all ranks.
std::vector<KernelSetting> SliceSettings() {
  static xla::SliceMeeting& meeting = *new xla::SliceMeeting();
  std::vector<KernelSetting> settings = Settings();
  if (TheClient().ok() && kInstrumented) settings = {Setting(model::DType::kFloat32)};
  for (KernelSetting& setting : settings)
    setting.make = [] { return xla::MakeSliceBackend(Programs(), meeting); };
  return settings;
}

INSTANTIATE_TEST_SUITE_P(Slices, CollectiveTest, testing::ValuesIn(SliceSettings()), NameOfSetting);

TEST(XlaBackend, KernelsAreTestedWithAPlugin) {
  if (!TheClient().ok()) GTEST_SKIP() << "no kernel was tested: " << TheClient().status();
  if (kInstrumented) GTEST_SKIP() << "no kernel was tested: compilation is slow with a sanitizer";
  EXPECT_FALSE(Settings().empty());
}

TEST(XlaBackend, ProgramsOfKernelsAreCompiledForATpuToo) {
  if (const StatusOr<std::string> libtpu = xla::FindLibtpu(); !libtpu.ok())
    GTEST_SKIP() << "nothing was compiled for a TPU: " << libtpu.status();
  EXPECT_TRUE(Gate().ok()) << Gate().status();
}

// The kinds of operations that a program of one rank has: all but collectives, which
// tests/tpu/tpu_slices_test.cc compiles, and those of float8, which are refused. The text of
// softmax_rescale_grad is that of softmax_rescale, and is compiled once.
std::set<model::OpKind> KindsOfOneRank() {
  using model::OpKind;
  std::set<OpKind> kinds;
#define TROUPE_OP(Kind, name, attributes, cpu, cuda) kinds.insert(OpKind::k##Kind);
#include "model/program/op_kinds.def"
  for (const OpKind kind : {OpKind::kQuantize, OpKind::kAmaxHistory, OpKind::kSoftmaxRescaleGrad})
    kinds.erase(kind);
  std::erase_if(kinds, [](OpKind kind) { return model::RulesOf(kind).collective.has_value(); });
  return kinds;
}

// States at the end how many programs were compiled for a TPU. If all tests ran, they had every
// kind of operation.
class TpuGateReport : public testing::Environment {
  void TearDown() override {
    if (!TheClient().ok() || kInstrumented || !Gate().ok()) return;
    std::set<model::OpKind> missing = KindsOfOneRank();
    const size_t all = missing.size();
    for (const model::OpKind kind : (*Gate())->kinds()) missing.erase(kind);
    fmt::print("compiled for TPU v6e: {} programs with {} of {} kinds of operations\n",
               (*Gate())->programs(), all - missing.size(), all);
    const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
    if (tests.test_to_run_count() != tests.total_test_count()) return;
    for (const model::OpKind kind : missing)
      ADD_FAILURE() << Name(kind) << " was not compiled for a TPU";
  }
};

testing::Environment* const report = testing::AddGlobalTestEnvironment(new TpuGateReport());

TEST(XlaBackend, ADeviceThatThePluginLacksIsRefused) {
  if (!TheClient().ok()) GTEST_SKIP() << TheClient().status();
  const auto made = xla::XlaBackend::Make(Programs(), {.slice = {.devices = {1000}}});
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
}

TEST(XlaBackend, ASliceThatIsNoSliceIsRefused) {
  if (!TheClient().ok()) GTEST_SKIP() << TheClient().status();
  const auto programs = std::make_shared<const std::vector<model::Program>>(2);
  const auto refused = [](const xla::Slice& slice) {
    return ToString(xla::XlaBackend::Make(Programs(), {.slice = slice}).status());
  };
  EXPECT_THAT(refused({.partition = 0, .devices = {1, 1}, .programs = programs}),
              testing::HasSubstr("XLA device 1 is in a slice twice"));
  EXPECT_THAT(refused({.partition = 2, .devices = {0, 1}, .programs = programs}),
              testing::HasSubstr("a slice of 2 devices has no partition 2"));
  EXPECT_THAT(refused({.partition = 0, .devices = {0, 1, 2}, .programs = programs}),
              testing::HasSubstr("a slice has 3 devices and 2 programs"));
}

TEST(XlaBackend, AProgramThatIsNotTheSlicesIsRefused) {
  if (!TheClient().ok()) GTEST_SKIP() << TheClient().status();
  std::vector<model::Program> programs(2, PlainProgram());
  const auto of_slice = std::make_shared<const std::vector<model::Program>>(programs);
  auto backend = xla::XlaBackend::Make(
      Programs(), {.slice = {.partition = 0, .devices = {0, 1}, .programs = of_slice}});
  ASSERT_TRUE(backend.ok()) << backend.status();
  AddPlainValue(programs[0], model::DType::kFloat32, {1}, "x");
  const auto made = (*backend)->Prepare(programs[0], PlainPlan(programs[0]), nullptr);
  EXPECT_THAT(ToString(made.status()),
              testing::HasSubstr("the program of partition 0 of the slice is another"));
}

}  // namespace
}  // namespace troupe::kernels
