#include "kernels/cpu/update.h"

#include <algorithm>
#include <cmath>

#include "kernels/backend/reduce_control_word.h"
#include "kernels/backend/update_decision.h"

namespace troupe::kernels::cpu {
namespace {

class ControlTotals : public Instruction {
 public:
  ControlTotals(int rank, const double* totals, double* control)
      : rank_(rank), totals_(totals), control_(control) {}
  Status Run(const RunOptions&) override {
    AddTotals(rank_, totals_, control_);
    return OkStatus();
  }

 private:
  const int rank_;
  const double* const totals_;
  double* const control_;
};

class ControlRouted : public Instruction {
 public:
  ControlRouted(std::vector<RouterTotals> totals, double* control)
      : totals_(std::move(totals)), control_(control) {}
  Status Run(const RunOptions&) override {
    for (const RouterTotals& totals : totals_) AddRouted(totals.lanes, totals.experts, control_);
    return OkStatus();
  }

 private:
  const std::vector<RouterTotals> totals_;
  double* const control_;
};

class SumOfSquares : public Instruction {
 public:
  SumOfSquares(int rank, std::vector<FloatRange> gradients, double* partial, double* control,
               const KernelTable& kernels, int threads)
      : rank_(rank),
        gradients_(std::move(gradients)),
        partial_(partial),
        control_(control),
        kernels_(kernels),
        threads_(threads) {}

  Status Run(const RunOptions&) override {
    std::fill_n(partial_, threads_, 0.0);
    Parallel(threads_, [this](int part) {
      for (const FloatRange& range : gradients_) {
        kernels_.sum_of_squares({range.data, range.count, partial_}, part, threads_);
      }
    });
    double sum = 0;
    for (int part = 0; part < threads_; ++part) sum += partial_[part];
    AddSumOfSquares(rank_, sum, control_);
    return OkStatus();
  }

 private:
  const int rank_;
  const std::vector<FloatRange> gradients_;
  double* const partial_;
  double* const control_;
  const KernelTable& kernels_;
  const int threads_;
};

class ControlReduce : public Instruction {
 public:
  ControlReduce(Communicator* communicator, double* control)
      : communicator_(communicator), control_(control) {}
  Status Run(const RunOptions&) override { return ReduceControlWord(communicator_, control_); }

 private:
  Communicator* const communicator_;
  double* const control_;
};

class ControlHalt : public Instruction {
 public:
  ControlHalt(double* control, double* halted) : control_(control), halted_(halted) {}
  Status Run(const RunOptions&) override {
    Halt(control_, halted_);
    return OkStatus();
  }

 private:
  double* const control_;
  double* const halted_;
};

class AdamW : public Instruction {
 public:
  AdamW(const model::AdamWAttributes& attributes, const double* control, const float* learning_rate,
        float* applied_steps, std::vector<AdamWEntry> entries, const KernelTable& kernels,
        int threads)
      : attributes_(attributes),
        control_(control),
        learning_rate_(learning_rate),
        applied_steps_(applied_steps),
        entries_(std::move(entries)),
        kernels_(kernels),
        threads_(threads) {}

  Status Run(const RunOptions&) override {
    const UpdateDecision decision = DecideUpdate(control_, attributes_.max_norm);
    if (!decision.apply) return OkStatus();
    const double learning_rate = *learning_rate_;
    *applied_steps_ += 1.0f;
    const double step = *applied_steps_;
    for (AdamWEntry& entry : entries_) {
      AdamWArgs& args = entry.args;
      args.gradient_scale = static_cast<float>(decision.gradient_scale);
      args.beta1 = static_cast<float>(attributes_.beta1);
      args.beta2 = static_cast<float>(attributes_.beta2);
      args.eps = static_cast<float>(attributes_.eps);
      args.decay = entry.weight_decay
                       ? static_cast<float>(1.0 - learning_rate * attributes_.weight_decay)
                       : 1.0f;
      args.step_size =
          static_cast<float>(learning_rate / (1.0 - std::pow(attributes_.beta1, step)));
      args.inverse_correction =
          static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(attributes_.beta2, step)));
    }
    Parallel(threads_, [this](int part) {
      for (const AdamWEntry& entry : entries_) kernels_.adamw(entry.args, part, threads_);
    });
    return OkStatus();
  }

 private:
  const model::AdamWAttributes attributes_;
  const double* const control_;
  const float* const learning_rate_;
  float* const applied_steps_;
  std::vector<AdamWEntry> entries_;
  const KernelTable& kernels_;
  const int threads_;
};

}  // namespace

std::unique_ptr<Instruction> MakeControlTotals(int rank, const double* totals, double* control) {
  return std::make_unique<ControlTotals>(rank, totals, control);
}

std::unique_ptr<Instruction> MakeControlRouted(std::vector<RouterTotals> totals, double* control) {
  return std::make_unique<ControlRouted>(std::move(totals), control);
}

std::unique_ptr<Instruction> MakeSumOfSquares(int rank, std::vector<FloatRange> gradients,
                                              double* partial, double* control,
                                              const KernelTable& kernels, int threads) {
  return std::make_unique<SumOfSquares>(rank, std::move(gradients), partial, control, kernels,
                                        threads);
}

std::unique_ptr<Instruction> MakeControlReduce(Communicator* communicator, double* control) {
  return std::make_unique<ControlReduce>(communicator, control);
}

std::unique_ptr<Instruction> MakeControlHalt(double* control, double* halted) {
  return std::make_unique<ControlHalt>(control, halted);
}

std::unique_ptr<Instruction> MakeAdamW(const model::AdamWAttributes& attributes,
                                       const double* control, const float* learning_rate,
                                       float* applied_steps, std::vector<AdamWEntry> entries,
                                       const KernelTable& kernels, int threads) {
  return std::make_unique<AdamW>(attributes, control, learning_rate, applied_steps,
                                 std::move(entries), kernels, threads);
}

}  // namespace troupe::kernels::cpu
