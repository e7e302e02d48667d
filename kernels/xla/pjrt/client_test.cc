// Tests with the plugin for processors. They are skipped where it is not installed.
#include "kernels/xla/pjrt/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/xla/pjrt/buffer.h"
#include "kernels/xla/pjrt/call.h"
#include "kernels/xla/pjrt/plugin.h"
#include "kernels/xla/pjrt/plugin_path.h"

namespace troupe::kernels::xla {
namespace {

using model::DType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kAdd = R"(module {
  func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.add %a, %b : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
})";

constexpr std::string_view kAddInPlace = R"(module {
  func.func @main(%a: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<2x3xf32>)
      -> tensor<2x3xf32> {
    %0 = stablehlo.add %a, %b : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
})";

constexpr std::string_view kMaximum = R"(module {
  func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.maximum %a, %b : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
})";

const std::vector<int64_t> kDims = {2, 3};
const std::vector<int> kFirstDevice = {0};

class ClientTest : public testing::Test {
 protected:
  void SetUp() override {
    const StatusOr<std::string> path = FindPlugin("");
    if (!path.ok()) GTEST_SKIP() << ToString(path.status());
    path_ = *path;
    StatusOr<std::unique_ptr<Client>> client = Client::Make(path_, 2);
    ASSERT_TRUE(client.ok()) << ToString(client.status());
    client_ = *std::move(client);
  }

  std::unique_ptr<Program> Compile(std::string_view text, const Options& options = {},
                                   int device = 0) {
    StatusOr<std::unique_ptr<Program>> program = client_->Compile(text, options, device);
    EXPECT_TRUE(program.ok()) << ToString(program.status());
    return program.ok() ? *std::move(program) : nullptr;
  }

  template <typename T>
  std::unique_ptr<Buffer> Upload(DType dtype, const std::vector<int64_t>& dims,
                                 std::vector<T> values, int device = 0) {
    StatusOr<std::unique_ptr<Buffer>> buffer =
        client_->Upload(dtype, dims, std::as_bytes(std::span(values)), device);
    values.assign(values.size(), T());  // the plugin may not read them any more
    EXPECT_TRUE(buffer.ok()) << ToString(buffer.status());
    return buffer.ok() ? *std::move(buffer) : nullptr;
  }
  std::unique_ptr<Buffer> Upload(const std::vector<float>& values, int device = 0) {
    return Upload(DType::kFloat32, kDims, values, device);
  }

  std::string path_;
  std::unique_ptr<Client> client_;
};

template <typename T = float>
std::vector<T> Read(const Buffer& buffer) {
  std::vector<T> values(buffer.bytes() / sizeof(T));
  const Status status = buffer.Read(std::as_writable_bytes(std::span(values)));
  EXPECT_TRUE(status.ok()) << ToString(status);
  return values;
}

// Runs `program` and returns its only result.
std::unique_ptr<Buffer> ResultOf(Program& program, const std::vector<const Buffer*>& arguments) {
  StatusOr<std::vector<std::unique_ptr<Buffer>>> results = program.Run(arguments);
  EXPECT_TRUE(results.ok()) << ToString(results.status());
  return results.ok() && results->size() == 1 ? std::move(results->front()) : nullptr;
}

TEST_F(ClientTest, NamesItsPluginAndItsDevices) {
  EXPECT_EQ(client_->plugin().path, path_);
  EXPECT_EQ(client_->plugin().platform, "cpu");
  EXPECT_EQ(client_->plugin().api_major, 0);
  EXPECT_GE(client_->plugin().api_minor, 81);
  EXPECT_EQ(client_->plugin().platform_version.find('\n'), std::string::npos);
  ASSERT_FALSE(client_->devices().empty());
  EXPECT_EQ(client_->devices()[0].kind, "cpu");
  EXPECT_EQ(client_->devices()[0].memory_bytes, 0);
}

// Returns how many threads a new client starts.
int64_t ThreadsOfClient(const std::string& path, int threads) {
  const auto count = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const int64_t before = count();
  const StatusOr<std::unique_ptr<Client>> client = Client::Make(path, threads);
  EXPECT_TRUE(client.ok()) << ToString(client.status());
  return count() - before;
}

TEST_F(ClientTest, HasTheThreadsThatAreStated) {
  EXPECT_LT(ThreadsOfClient(path_, 1), ThreadsOfClient(path_, 16));
}

TEST_F(ClientTest, RunsAProgram) {
  const std::unique_ptr<Program> add = Compile(kAdd);
  const std::unique_ptr<Buffer> a = Upload({1, 2, 3, 4, 5, 6});
  const std::unique_ptr<Buffer> b = Upload({.5, .25, 0, 0, 0, -6});
  const std::unique_ptr<Buffer> sum = ResultOf(*add, {a.get(), b.get()});
  EXPECT_THAT(Read(*sum), ElementsAre(1.5, 2.25, 3, 4, 5, 0));
  EXPECT_THAT(Read(*ResultOf(*add, {sum.get(), a.get()})), ElementsAre(2.5, 4.25, 6, 8, 10, 6));
}

TEST_F(ClientTest, RunsAProgramOnEachDevice) {
  for (int device = 0; device < std::ssize(client_->devices()); ++device) {
    const std::unique_ptr<Program> add = Compile(kAdd, {}, device);
    const std::unique_ptr<Buffer> a = Upload({1, 2, 3, 4, 5, 6}, device);
    EXPECT_THAT(Read(*ResultOf(*add, {a.get(), a.get()})), ElementsAre(2, 4, 6, 8, 10, 12));
  }
}

TEST_F(ClientTest, ReturnsTheBitsOfEachType) {
  EXPECT_THAT(Read(*Upload({1, -2, 3, INFINITY, 5, 6})), ElementsAre(1, -2, 3, INFINITY, 5, 6));
  EXPECT_THAT(Read<uint16_t>(*Upload<uint16_t>(DType::kBFloat16, {3}, {0x3f80, 0x7fc1, 0x0001})),
              ElementsAre(0x3f80, 0x7fc1, 0x0001));
  EXPECT_THAT(Read<double>(*Upload<double>(DType::kFloat64, {2, 1}, {1e300, 0x1p-1074})),
              ElementsAre(1e300, 0x1p-1074));
  EXPECT_THAT(Read<int32_t>(*Upload<int32_t>(DType::kInt32, {2}, {-1, INT32_MIN})),
              ElementsAre(-1, INT32_MIN));
  EXPECT_THAT(Read<float>(*Upload<float>(DType::kFloat32, {0, 3}, {})), IsEmpty());
}

TEST_F(ClientTest, RunsAProgramOfScalars) {
  const std::unique_ptr<Program> less = Compile(R"(module {
  func.func @main(%a: tensor<f64>, %b: tensor<f64>) -> (tensor<i1>, tensor<f64>) {
    %0 = stablehlo.compare LT, %a, %b : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %1 = stablehlo.subtract %a, %b : tensor<f64>
    return %0, %1 : tensor<i1>, tensor<f64>
  }
})");
  const std::unique_ptr<Buffer> a = Upload<double>(DType::kFloat64, {}, {1.5});
  const std::unique_ptr<Buffer> b = Upload<double>(DType::kFloat64, {}, {4});
  const auto results = less->Run(std::vector<const Buffer*>{a.get(), b.get()});
  ASSERT_TRUE(results.ok()) << ToString(results.status());
  ASSERT_EQ(results->size(), 2);
  EXPECT_THAT(Read<uint8_t>(*results->at(0)), ElementsAre(1));
  EXPECT_THAT(Read<double>(*results->at(1)), ElementsAre(-2.5));
}

TEST_F(ClientTest, ReadsTheResultOfATranspositionRowMajor) {
  const std::unique_ptr<Program> transpose = Compile(R"(module {
  func.func @main(%a: tensor<2x3xf32>) -> tensor<3x2xf32> {
    %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    return %0 : tensor<3x2xf32>
  }
})");
  const std::unique_ptr<Buffer> a = Upload({1, 2, 3, 4, 5, 6});
  EXPECT_THAT(Read(*ResultOf(*transpose, {a.get()})), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST_F(ClientTest, RefusesToReadAnotherSize) {
  const std::unique_ptr<Buffer> a = Upload({1, 2, 3, 4, 5, 6});
  std::vector<std::byte> bytes(23);
  EXPECT_EQ(a->Read(bytes), InvalidArgument("23 bytes are to be read of a tensor that has 24"));
}

TEST_F(ClientTest, AllowsArgumentsAndProgramsToBeDestroyedAtOnce) {
  std::unique_ptr<Program> add = Compile(kAdd);
  std::unique_ptr<Buffer> a = Upload({1, 2, 3, 4, 5, 6});
  const std::unique_ptr<Buffer> sum = ResultOf(*add, {a.get(), a.get()});
  a.reset();
  add.reset();
  EXPECT_THAT(Read(*sum), ElementsAre(2, 4, 6, 8, 10, 12));
}

uintptr_t AddressOf(const PJRT_Api& api, const Buffer& buffer) {
  TROUPE_PJRT_ARGUMENTS(PJRT_Buffer_UnsafePointer_Args, pointer);
  pointer.buffer = static_cast<const PjrtBuffer&>(buffer).pjrt();
  EXPECT_TRUE(TakeStatus(api, api.PJRT_Buffer_UnsafePointer(&pointer)).ok());
  return pointer.buffer_pointer;
}

TEST_F(ClientTest, WritesAResultIntoTheArgumentThatTheTextGivesToIt) {
  const PJRT_Api& api = *LoadPlugin(path_, 0)->api;
  const std::unique_ptr<Program> add = Compile(kAddInPlace);
  const std::unique_ptr<Buffer> a = Upload({1, 2, 3, 4, 5, 6});
  const std::unique_ptr<Buffer> b = Upload({1, 1, 1, 1, 1, 1});
  const uintptr_t address = AddressOf(api, *a);
  const std::unique_ptr<Buffer> sum = ResultOf(*add, {a.get(), b.get()});
  EXPECT_EQ(AddressOf(api, *sum), address);
  EXPECT_THAT(Read(*sum), ElementsAre(2, 3, 4, 5, 6, 7));
  EXPECT_THAT(Read(*b), ElementsAre(1, 1, 1, 1, 1, 1));

  std::vector<std::byte> bytes(a->bytes());
  EXPECT_EQ(a->Read(bytes),
            FailedPrecondition("a run has consumed the tensor, which was an argument of it"));
  const Status again = add->Run(std::vector<const Buffer*>{a.get(), b.get()}).status();
  EXPECT_EQ(again.code(), StatusCode::kInvalidArgument) << ToString(again);
  const Status twice = add->Run(std::vector<const Buffer*>{sum.get(), sum.get()}).status();
  EXPECT_EQ(twice.code(), StatusCode::kInvalidArgument) << ToString(twice);
}

// Weights are updated in place between two steps. A library that keeps a packed copy of an operand
// of this size by its address would multiply by the weights of an earlier step.
TEST_F(ClientTest, MultipliesByAnOperandThatWasUpdatedInPlace) {
  constexpr int64_t kRows = 256, kInner = 256, kColumns = 768;
  for (const bool transposed : {false, true}) {
    const std::vector<int64_t> dims = transposed ? std::vector<int64_t>{kColumns, kInner}
                                                 : std::vector<int64_t>{kInner, kColumns};
    const std::string x = fmt::format("tensor<{}x{}xf32>", kRows, kInner);
    const std::string w = fmt::format("tensor<{}x{}xf32>", dims[0], dims[1]);
    const std::string y = fmt::format("tensor<{}x{}xf32>", kRows, kColumns);
    const std::unique_ptr<Program> multiply = Compile(fmt::format(R"(module {{
  func.func @main(%x: {0}, %w: {1}) -> {2} {{
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [{3}],
        precision = [HIGHEST, HIGHEST] : ({0}, {1}) -> {2}
    return %y : {2}
  }}
}})",
                                                                  x, w, y, transposed ? 1 : 0));
    const std::unique_ptr<Program> update = Compile(fmt::format(R"(module {{
  func.func @main(%w: {0} {{tf.aliasing_output = 0 : i32}}) -> {0} {{
    %one = stablehlo.constant dense<1.0> : {0}
    %next = stablehlo.add %w, %one : {0}
    return %next : {0}
  }}
}})",
                                                                w));
    ASSERT_TRUE(multiply != nullptr && update != nullptr);
    const auto ones =
        Upload<float>(DType::kFloat32, {kRows, kInner}, std::vector<float>(kRows * kInner, 1));
    auto weights = Upload<float>(DType::kFloat32, dims, std::vector<float>(kInner * kColumns, 0));
    for (int run = 0; run < 3; ++run) {
      const std::vector<float> product =
          Read<float>(*ResultOf(*multiply, {ones.get(), weights.get()}));
      const auto wrong = std::ranges::count_if(
          product, [&](float number) { return number != static_cast<float>(run * kInner); });
      EXPECT_EQ(wrong, 0) << "run " << run << (transposed ? ", transposed" : "");
      weights = ResultOf(*update, {weights.get()});
    }
  }
}

TEST_F(ClientTest, RefusesOtherArgumentsThanTheProgramHas) {
  const std::unique_ptr<Program> add = Compile(kAdd);
  const std::unique_ptr<Buffer> a = Upload({1, 2, 3, 4, 5, 6});
  const std::unique_ptr<Buffer> small = Upload<float>(DType::kFloat32, {1, 3}, {1, 2, 3});
  EXPECT_THAT(ToString(add->Run(std::vector<const Buffer*>{a.get()}).status()),
              HasSubstr("supplied 1 buffers but compiled program expected 2"));
  EXPECT_THAT(ToString(add->Run(std::vector<const Buffer*>{a.get(), small.get()}).status()),
              HasSubstr("parameter 1 of size 24 but got buffer with incompatible size 12"));
}

TEST_F(ClientTest, NamesTheLineOfATextThatIsWrong) {
  std::string text(kAdd);
  text.replace(text.find(".add"), 4, ".ad");
  const Status status = client_->Compile(text, {}, 0).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ToString(status), HasSubstr("-:3:10: error: custom op 'stablehlo.ad' is unknown"));
  EXPECT_NE(ToString(status).back(), '\n');
}

TEST_F(ClientTest, RefusesATextThatCallsWhatThePluginLacks) {
  const Status status = client_
                            ->Compile(R"(module {
  func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.custom_call @nobody(%a) : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
})",
                                      {}, 0)
                            .status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ToString(status), HasSubstr("nobody"));
}

TEST_F(ClientTest, NamesAnOptionThatThePluginDoesNotKnow) {
  EXPECT_EQ(client_->Compile(kAdd, {{"xla_of_nobody", true}}, 0).status(),
            InvalidArgument("No such compile option: 'xla_of_nobody'"));
}

TEST_F(ClientTest, NamesAnOptionWhoseValueIsWrong) {
  const Options options = {{"xla_cpu_use_fusion_emitters", std::string("maybe")}};
  const Status status = client_->Compile(kAdd, options, 0).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ToString(status), HasSubstr("option xla_cpu_use_fusion_emitters, 'maybe' is not"));
}

TEST_F(ClientTest, AcceptsOptionsOfEachType) {
  Compile(kAdd, {{"xla_backend_optimization_level", int64_t{0}},
                 {"xla_cpu_use_fusion_emitters", false},
                 {"xla_cpu_max_isa", std::string("AVX2")}});
}

TEST_F(ClientTest, MakesAProgramAgainFromItsBytes) {
  const std::unique_ptr<Program> add = Compile(kAddInPlace);
  EXPECT_FALSE(add->loaded());
  const StatusOr<std::string> bytes = add->Serialize();
  ASSERT_TRUE(bytes.ok()) << ToString(bytes.status());
  auto loaded = client_->Load(*bytes, kFirstDevice);
  ASSERT_TRUE(loaded.ok()) << ToString(loaded.status());
  EXPECT_TRUE((*loaded)->loaded());
  const std::unique_ptr<Buffer> a = Upload({1, 2, 3, 4, 5, 6});
  const std::unique_ptr<Buffer> b = Upload({1, 1, 1, 1, 1, 1});
  EXPECT_THAT(Read(*ResultOf(**loaded, {a.get(), b.get()})), ElementsAre(2, 3, 4, 5, 6, 7));
  std::vector<std::byte> consumed(24);
  EXPECT_FALSE(a->Read(consumed).ok()) << "the loaded program takes over the argument too";
}

TEST_F(ClientTest, RefusesBytesThatAreNoProgram) {
  EXPECT_FALSE(client_->Load("no program", kFirstDevice).ok());
}

TEST_F(ClientTest, StatesWhatDecidesTheCodeOfAProgram) {
  EXPECT_NE(client_->OptionBytes({}, kFirstDevice),
            client_->OptionBytes({{"xla_cpu_max_isa", "AVX2"}}, kFirstDevice));
  EXPECT_NE(client_->OptionBytes({}, kFirstDevice).find("xla_allow_excess_precision"),
            std::string::npos);
  EXPECT_EQ(client_->plugin().threads, 2);
  const auto again = Client::Make(path_, 2);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(client_->plugin().topology.empty());
  EXPECT_EQ((*again)->plugin().topology, client_->plugin().topology);
}

TEST_F(ClientTest, KeepsNanInAMaximum) {
  const std::unique_ptr<Buffer> a = Upload({NAN, 1, 2, 3, 4, NAN});
  const std::unique_ptr<Buffer> b = Upload({0, NAN, 1, NAN, 1, NAN});
  const std::vector<float> maximum = Read(*ResultOf(*Compile(kMaximum), {a.get(), b.get()}));
  EXPECT_TRUE(std::isnan(maximum[0]));
  EXPECT_TRUE(std::isnan(maximum[1]));
  EXPECT_EQ(maximum[2], 2);
  EXPECT_TRUE(std::isnan(maximum[3]));
  EXPECT_EQ(maximum[4], 4);
  EXPECT_TRUE(std::isnan(maximum[5]));
}

TEST_F(ClientTest, PrefersTheOptionOfTheCaller) {
  const std::unique_ptr<Buffer> a = Upload({NAN, 1, 2, 3, 4, 5});
  const std::unique_ptr<Buffer> b = Upload({0, NAN, 1, 1, 1, 1});
  const std::unique_ptr<Program> fast = Compile(kMaximum, {{"xla_cpu_enable_fast_min_max", true}});
  const std::vector<float> maximum = Read(*ResultOf(*fast, {a.get(), b.get()}));
  EXPECT_FALSE(std::isnan(maximum[0]) && std::isnan(maximum[1]));
}

// Each device adds what the other has.
constexpr std::string_view kSumOverDevices = R"(module {
  sdy.mesh @ranks = <["r"=2]>
  func.func @main(%a: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>})
      -> (tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>}) {
    %0 = sdy.manual_computation(%a) in_shardings=[<@ranks, [{"r"}, {}]>]
        out_shardings=[<@ranks, [{"r"}, {}]>] manual_axes={"r"} (%b: tensor<2x3xf32>) {
      %1 = "stablehlo.all_reduce"(%b) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}>
          ({^bb0(%x: tensor<f32>, %y: tensor<f32>):
            %z = stablehlo.add %x, %y : tensor<f32>
            stablehlo.return %z : tensor<f32>}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      sdy.return %1 : tensor<2x3xf32>
    } : (tensor<4x3xf32>) -> tensor<4x3xf32>
    return %0 : tensor<4x3xf32>
  }
})";

TEST_F(ClientTest, RunsAProgramOfTwoDevicesInAThreadForEach) {
  const std::vector<int> devices = {2, 1};
  StatusOr<std::unique_ptr<Program>> sum = client_->Compile(kSumOverDevices, {}, devices);
  ASSERT_TRUE(sum.ok()) << ToString(sum.status());
  const auto run = [&](int partition) {
    std::unique_ptr<Buffer> x =
        Upload(std::vector<float>(6, static_cast<float>(1 + partition)), devices[partition]);
    for (int launch = 1; launch <= 20; ++launch) {
      auto results = (*sum)->Run(std::vector<const Buffer*>{x.get()}, {partition, launch});
      ASSERT_TRUE(results.ok()) << ToString(results.status());
      x = std::move(results->front());
    }
    // 3 after the first run, and twice as much after each of the others.
    EXPECT_EQ(Read(*x), std::vector<float>(6, 3.0F * (1 << 19)));
  };
  std::jthread other(run, 1);
  run(0);
}

TEST_F(ClientTest, RunsOneProgramInTwoThreadsAtOnce) {
  const std::unique_ptr<Program> add = Compile(kAdd);
  const auto accumulate = [&](float step) {
    const std::unique_ptr<Buffer> summand = Upload(std::vector<float>(6, step));
    std::unique_ptr<Buffer> sum = Upload(std::vector<float>(6, 0));
    for (int run = 0; run < 100; ++run) sum = ResultOf(*add, {sum.get(), summand.get()});
    EXPECT_EQ(Read(*sum), std::vector<float>(6, 100 * step));
  };
  std::jthread other(accumulate, 2);
  accumulate(1);
}

}  // namespace
}  // namespace troupe::kernels::xla
