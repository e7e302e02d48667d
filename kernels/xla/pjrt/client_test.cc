#include "kernels/xla/pjrt/client.h"
#include <gtest/gtest.h>
#include "kernels/xla/pjrt/plugin_path.h"
namespace troupe::kernels::xla {
namespace {
TEST(Client, Smoke) {
  auto path = FindPlugin("");
  ASSERT_TRUE(path.ok()) << ToString(path.status());
  auto client = Client::Make(*path, 2);
  ASSERT_TRUE(client.ok()) << ToString(client.status());
  printf("%s|%s|%d.%d|%zu|%s|%d|%ld\n", (*client)->plugin().platform.c_str(), (*client)->plugin().platform_version.c_str(), (*client)->plugin().api_major, (*client)->plugin().api_minor, (*client)->devices().size(), (*client)->devices()[0].kind.c_str(), (*client)->devices()[0].id, (*client)->devices()[0].memory_bytes);
  for (auto [t, o] : std::vector<std::pair<std::string, Options>>{
     {"module {\n func.func @main(%0: tensor<2xf32>) -> tensor<2xf32> {\n %1 = stablehlo.ad %0, %0 : tensor<2xf32>\n return %1 : tensor<2xf32>\n}}", {}},
     {"module {\n func.func @main(%0: tensor<2xf32>) -> tensor<2xf32> {\n %1 = stablehlo.add %0, %0 : tensor<3xf32>\n return %1 : tensor<2xf32>\n}}", {}},
     {"module {\n func.func @main(%0: tensor<2xf32>) -> tensor<2xf32> {\n %1 = stablehlo.custom_call @nobody(%0) : (tensor<2xf32>) -> tensor<2xf32>\n return %1 : tensor<2xf32>\n}}", {}},
     {"module {\n func.func @main(%0: tensor<2xf32>) -> tensor<2xf32> {\n %1 = stablehlo.add %0, %0 : tensor<2xf32>\n return %1 : tensor<2xf32>\n}}", {{"xla_of_nobody", true}}},
     {"module {\n func.func @main(%0: tensor<2xf32>) -> tensor<2xf32> {\n %1 = stablehlo.add %0, %0 : tensor<2xf32>\n return %1 : tensor<2xf32>\n}}", {{"xla_cpu_use_fusion_emitters", std::string("maybe")}}},
     {"module {\n func.func @main(%0: tensor<2xf32>) -> tensor<2xf32> {\n %1 = stablehlo.add %0, %0 : tensor<2xf32>\n return %1 : tensor<2xf32>\n}}", {{"xla_backend_optimization_level", int64_t{0}}, {"xla_llvm_force_inline_before_split", false}}},
     {"", {}}, {"module {}", {}},
     {"module {\n func.func @main() {\n return\n}}", {}},
     {"module {\n func.func @main(%0: tensor<2xf32>) -> tensor<2xi1> {\n %1 = stablehlo.compare EQ, %0, %0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>\n return %1 : tensor<2xi1>\n}}", {}}}) {
    auto p = (*client)->Compile(t, o, 0);
    printf("==> %s\n", ToString(p.status()).c_str());
    if (!p.ok()) continue;
    float x[] = {1, 2};
    const int64_t dims[] = {2};
    auto b = (*client)->Upload(model::DType::kFloat32, dims, std::as_bytes(std::span(x)), 0);
    const Buffer* args[] = {b->get(), b->get()};
    for (int n = 0; n < 3; ++n) {
      auto r = (*p)->Run(std::span(args, n));
      printf("  run %d: %s\n", n, ToString(r.status()).c_str());
    }
    const int64_t dims3[] = {1, 1, 1};
    b = (*client)->Upload(model::DType::kInt32, dims3, std::as_bytes(std::span(x, 1)), 0);
    args[0] = b->get();
    auto r = (*p)->Run(std::span(args, 1));
    printf("  wrong: %s\n", ToString(r.status()).c_str());
  }
}
}
}
