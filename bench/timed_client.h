// A client of XLA that measures how long it compiles and runs programs.
#ifndef TROUPE_BENCH_TIMED_CLIENT_H_
#define TROUPE_BENCH_TIMED_CLIENT_H_

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/program_bench.h"
#include "kernels/xla/pjrt/client.h"

namespace troupe::bench {

struct XlaTimes {
  double compile_seconds = 0, run_seconds = 0;
  int64_t compiled_programs = 0, runs = 0;
};

class TimedProgram final : public kernels::xla::Program {
 public:
  TimedProgram(std::unique_ptr<kernels::xla::Program> program, XlaTimes& times)
      : program_(std::move(program)), times_(times) {}

  StatusOr<std::vector<std::unique_ptr<kernels::xla::Buffer>>> Run(
      std::span<const kernels::xla::Buffer* const> arguments) override {
    const double start = Now();
    auto results = program_->Run(arguments);
    times_.run_seconds += Now() - start;
    ++times_.runs;
    return results;
  }

 private:
  const std::unique_ptr<kernels::xla::Program> program_;
  XlaTimes& times_;
};

// Not thread-safe. Must outlive its programs; `client` must outlive it.
class TimedClient final : public kernels::xla::Client {
 public:
  explicit TimedClient(kernels::xla::Client& client) : client_(client) {}

  const XlaTimes& times() const { return times_; }

  const kernels::xla::PluginFacts& plugin() const override { return client_.plugin(); }
  const std::vector<kernels::xla::DeviceFacts>& devices() const override {
    return client_.devices();
  }
  StatusOr<std::unique_ptr<kernels::xla::Program>> Compile(std::string_view text,
                                                           const kernels::xla::Options& options,
                                                           int device) override {
    const double start = Now();
    TROUPE_ASSIGN_OR_RETURN(auto program, client_.Compile(text, options, device));
    times_.compile_seconds += Now() - start;
    ++times_.compiled_programs;
    return std::unique_ptr<kernels::xla::Program>(
        std::make_unique<TimedProgram>(std::move(program), times_));
  }
  StatusOr<std::unique_ptr<kernels::xla::Buffer>> Upload(model::DType dtype,
                                                         std::span<const int64_t> dims,
                                                         std::span<const std::byte> bytes,
                                                         int device) override {
    return client_.Upload(dtype, dims, bytes, device);
  }

 private:
  kernels::xla::Client& client_;
  XlaTimes times_;
};

}  // namespace troupe::bench

#endif  // TROUPE_BENCH_TIMED_CLIENT_H_
