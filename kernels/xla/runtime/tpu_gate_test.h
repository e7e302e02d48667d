// Compiles programs of tests for a TPU too, where there is libtpu (TROUPE_LIBTPU).
#ifndef TROUPE_KERNELS_XLA_RUNTIME_TPU_GATE_TEST_H_
#define TROUPE_KERNELS_XLA_RUNTIME_TPU_GATE_TEST_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/xla/pjrt/client.h"
#include "kernels/xla/pjrt/topology.h"

namespace troupe::kernels {

// The client of a plugin. The first program that a test compiles must be accepted for a TPU v6e.
class GatedClient : public xla::Client {
 public:
  GatedClient(std::unique_ptr<xla::Client> client, std::unique_ptr<xla::Topology> tpu)
      : client_(std::move(client)), tpu_(std::move(tpu)) {}

  const xla::PluginFacts& plugin() const override { return client_->plugin(); }
  const std::vector<xla::DeviceFacts>& devices() const override { return client_->devices(); }
  StatusOr<std::unique_ptr<xla::Program>> Compile(std::string_view text,
                                                  const xla::Options& options,
                                                  std::span<const int> devices) override {
    const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    if (test != gated_ && devices.size() == 1) {
      gated_ = test;
      const auto memory = tpu_->Compile(text, {}, 0);
      EXPECT_TRUE(memory.ok()) << memory.status() << "\n" << text;
    }
    return client_->Compile(text, options, devices);
  }
  std::string OptionBytes(const xla::Options& options,
                          std::span<const int> devices) const override {
    return client_->OptionBytes(options, devices);
  }
  StatusOr<std::unique_ptr<xla::Program>> Load(std::string_view bytes,
                                               std::span<const int> devices) override {
    return client_->Load(bytes, devices);
  }
  StatusOr<std::unique_ptr<xla::Buffer>> Upload(model::DType dtype, std::span<const int64_t> dims,
                                                std::span<const std::byte> bytes,
                                                int device) override {
    return client_->Upload(dtype, dims, bytes, device);
  }

 private:
  const std::unique_ptr<xla::Client> client_;
  const std::unique_ptr<xla::Topology> tpu_;
  std::string gated_;  // the test whose first program has been compiled
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_XLA_RUNTIME_TPU_GATE_TEST_H_
