// Compiles programs of tests for a TPU too, where there is libtpu (TROUPE_LIBTPU).
#ifndef TROUPE_KERNELS_XLA_RUNTIME_TPU_GATE_TEST_H_
#define TROUPE_KERNELS_XLA_RUNTIME_TPU_GATE_TEST_H_

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/xla/pjrt/topology.h"
#include "kernels/xla/testing/forwarding_client.h"

namespace troupe::kernels {

// The first program that a test compiles for one device must be accepted for a TPU v6e too.
class GatedClient final : public xla::ForwardingClient {
 public:
  GatedClient(std::unique_ptr<xla::Client> client, std::unique_ptr<xla::Topology> tpu)
      : ForwardingClient(*client), client_(std::move(client)), tpu_(std::move(tpu)) {}

  StatusOr<std::unique_ptr<xla::Program>> Compile(std::string_view text,
                                                  const xla::Options& options,
                                                  std::span<const int> devices) override {
    const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    if (test != gated_ && devices.size() == 1) {
      gated_ = test;
      const auto memory = tpu_->Compile(text, {}, 0);
      EXPECT_TRUE(memory.ok()) << memory.status() << "\n" << text;
    }
    return ForwardingClient::Compile(text, options, devices);
  }

 private:
  const std::unique_ptr<xla::Client> client_;
  const std::unique_ptr<xla::Topology> tpu_;
  std::string gated_;  // the test whose first program has been compiled
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_XLA_RUNTIME_TPU_GATE_TEST_H_
