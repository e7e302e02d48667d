// Compiles programs of tests for a TPU too, where there is libtpu (TROUPE_LIBTPU).
#ifndef TROUPE_KERNELS_XLA_RUNTIME_TPU_GATE_TEST_H_
#define TROUPE_KERNELS_XLA_RUNTIME_TPU_GATE_TEST_H_

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/backend/op_sequence.h"
#include "kernels/xla/pjrt/topology.h"
#include "kernels/xla/testing/forwarding_client.h"
#include "model/program/program.h"

namespace troupe::kernels {

// The gate of a TPU v6e, which must accept the texts of each program that is the first of its test
// with operations of these kinds and numbers of inputs. The others differ in extents and
// attributes. Thread-safe.
class TpuGate {
 public:
  explicit TpuGate(std::unique_ptr<xla::Topology> tpu) : tpu_(std::move(tpu)) {}

  // The texts that come from now on are those of this program.
  void Begin(const model::Program& program) {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    std::string operations = fmt::format("{}.{}", test.test_suite_name(), test.name());
    const std::lock_guard lock(mutex_);
    present_.clear();
    ForEachOp(program, [&](const model::Op& op) {
      present_.insert(op.kind);
      operations += fmt::format(" {} of {}", Name(op.kind), op.inputs.size());
    });
    is_first_ = begun_.insert(std::move(operations)).second;
  }

  void Compile(std::string_view text) {
    const std::lock_guard lock(mutex_);
    if (!is_first_) return;
    const auto compiled = tpu_->Compile(text, {}, 0);
    EXPECT_TRUE(compiled.ok()) << compiled.status() << "\n" << text;
    ++programs_;
    kinds_.insert(present_.begin(), present_.end());
  }

  // The number of programs that have been compiled, and the kinds of their operations.
  size_t programs() const { return programs_; }
  const std::set<model::OpKind>& kinds() const { return kinds_; }

 private:
  const std::unique_ptr<xla::Topology> tpu_;
  std::mutex mutex_;
  std::set<std::string> begun_;
  std::set<model::OpKind> present_;
  bool is_first_ = false;
  size_t programs_ = 0;
  std::set<model::OpKind> kinds_;
};

// A client whose programs of one device pass the gate.
class GatedClient final : public xla::ForwardingClient {
 public:
  // `to` and `gate` must outlive this object.
  GatedClient(xla::Client& to, TpuGate& gate) : ForwardingClient(to), gate_(gate) {}

  StatusOr<std::unique_ptr<xla::Program>> Compile(std::string_view text,
                                                  const xla::Options& options,
                                                  std::span<const int> devices) override {
    if (devices.size() == 1) gate_.Compile(text);
    return ForwardingClient::Compile(text, options, devices);
  }

 private:
  TpuGate& gate_;
};

// A backend that states to the gate which program it prepares.
class GatedBackend final : public Backend {
 public:
  // `gate` must outlive this object.
  GatedBackend(std::unique_ptr<Backend> backend, TpuGate& gate)
      : backend_(std::move(backend)), gate_(gate) {}

  std::string kernel_level() const override { return backend_->kernel_level(); }
  StatusOr<std::unique_ptr<Executable>> Prepare(const model::Program& program,
                                                const model::MemoryPlan& plan,
                                                const FindCommunicator& find) override {
    gate_.Begin(program);
    return backend_->Prepare(program, plan, find);
  }
  const std::vector<std::string>& fallbacks() const override { return backend_->fallbacks(); }
  const std::vector<std::string>& implementations() const override {
    return backend_->implementations();
  }
  std::vector<ExecutedMatmul> executed_matmuls() const override {
    return backend_->executed_matmuls();
  }
  PreparationCounts preparation_counts() const override { return backend_->preparation_counts(); }

 private:
  const std::unique_ptr<Backend> backend_;
  TpuGate& gate_;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_XLA_RUNTIME_TPU_GATE_TEST_H_
