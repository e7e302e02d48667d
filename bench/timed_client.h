// A client of XLA that measures how long it compiles and runs programs.
#ifndef TROUPE_BENCH_TIMED_CLIENT_H_
#define TROUPE_BENCH_TIMED_CLIENT_H_

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/program_bench.h"
#include "kernels/xla/testing/forwarding_client.h"

namespace troupe::bench {

struct XlaTimes {
  double compile_seconds =
      0;  // from the begin of the first compilation, or load, to the last's end
  // For each compiled program, with the waits for its results.
  std::vector<double> run_seconds;
};

class TimedProgram final : public kernels::xla::Program {
 public:
  TimedProgram(std::unique_ptr<kernels::xla::Program> program, XlaTimes& times)
      : program_(std::move(program)), times_(times), index_(times.run_seconds.size()) {
    times_.run_seconds.push_back(0);
  }

  StatusOr<std::vector<std::unique_ptr<kernels::xla::Buffer>>> Run(
      std::span<const kernels::xla::Buffer* const> arguments,
      const kernels::xla::Launch& launch) override {
    const double start = Now();
    TROUPE_ASSIGN_OR_RETURN(auto results, program_->Run(arguments, launch));
    if (!results.empty()) TROUPE_RETURN_IF_ERROR(Await(results));
    times_.run_seconds[index_] += Now() - start;
    return results;
  }
  StatusOr<std::string> Serialize() const override { return program_->Serialize(); }
  bool loaded() const override { return program_->loaded(); }

 private:
  // A result can be read when all of them are complete; the smallest one costs the least.
  Status Await(const std::vector<std::unique_ptr<kernels::xla::Buffer>>& results) {
    const auto& smallest =
        *std::ranges::min_element(results, {}, [](const auto& result) { return result->bytes(); });
    bytes_.resize(smallest->bytes());
    return smallest->Read(bytes_);
  }

  const std::unique_ptr<kernels::xla::Program> program_;
  XlaTimes& times_;
  const size_t index_;
  std::vector<std::byte> bytes_;
};

// Programs may be compiled by several threads at once, before the first one runs.
class TimedClient final : public kernels::xla::ForwardingClient {
 public:
  // `client` must outlive this object, and this object its programs.
  explicit TimedClient(kernels::xla::Client& client) : ForwardingClient(client) {}

  const XlaTimes& times() const { return times_; }

  StatusOr<std::unique_ptr<kernels::xla::Program>> Compile(std::string_view text,
                                                           const kernels::xla::Options& options,
                                                           std::span<const int> devices) override {
    const double start = Now();
    return Timed(start, ForwardingClient::Compile(text, options, devices));
  }
  StatusOr<std::unique_ptr<kernels::xla::Program>> Load(std::string_view bytes,
                                                        std::span<const int> devices) override {
    const double start = Now();
    return Timed(start, ForwardingClient::Load(bytes, devices));
  }

 private:
  using Made = StatusOr<std::unique_ptr<kernels::xla::Program>>;
  Made Timed(double start, Made made) {
    TROUPE_RETURN_IF_ERROR(made.status());
    const std::lock_guard lock(mutex_);
    first_ = std::min(first_, start);
    times_.compile_seconds = Now() - first_;
    return Made(std::make_unique<TimedProgram>(*std::move(made), times_));
  }

  std::mutex mutex_;
  double first_ = std::numeric_limits<double>::max();
  XlaTimes times_;
};

}  // namespace troupe::bench

#endif  // TROUPE_BENCH_TIMED_CLIENT_H_
