#include "kernels/cpu/update.h"

#include <algorithm>

#include "kernels/backend/optimizer_numbers.h"
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

class CountStep : public Instruction {
 public:
  CountStep(const double* control, float* applied_steps)
      : control_(control), applied_steps_(applied_steps) {}
  Status Run(const RunOptions&) override {
    if (DecideUpdate(control_, 0).apply) *applied_steps_ += 1.0f;
    return OkStatus();
  }

 private:
  const double* const control_;
  float* const applied_steps_;
};

// `Args`: the numbers that NumbersOf returns for `Attributes`.
template <typename Attributes, typename Args>
class Optimizer : public Instruction {
 public:
  Optimizer(const Attributes& attributes, UpdateInputs inputs, UpdateKernel<Args> kernel,
            int threads)
      : attributes_(attributes), inputs_(std::move(inputs)), kernel_(kernel), threads_(threads) {}

  Status Run(const RunOptions&) override {
    const UpdateDecision decision = DecideUpdate(inputs_.control, attributes_.max_norm);
    if (!decision.apply) return OkStatus();
    const Args args = NumbersOf(attributes_, decision.gradient_scale, *inputs_.learning_rate,
                                *inputs_.applied_steps);
    Parallel(threads_, [&](int part) {
      for (const UpdateArgs& of : inputs_.parameters) kernel_(args, of, part, threads_);
    });
    return OkStatus();
  }

 private:
  const Attributes attributes_;
  const UpdateInputs inputs_;
  const UpdateKernel<Args> kernel_;
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

std::unique_ptr<Instruction> MakeCountStep(const double* control, float* applied_steps) {
  return std::make_unique<CountStep>(control, applied_steps);
}

std::unique_ptr<Instruction> MakeAdamW(const model::AdamWAttributes& attributes,
                                       UpdateInputs inputs, const KernelTable& kernels,
                                       int threads) {
  return std::make_unique<Optimizer<model::AdamWAttributes, AdamWArgs>>(
      attributes, std::move(inputs), kernels.adamw, threads);
}

std::unique_ptr<Instruction> MakeSgd(const model::SgdAttributes& attributes, UpdateInputs inputs,
                                     const KernelTable& kernels, int threads) {
  return std::make_unique<Optimizer<model::SgdAttributes, SgdArgs>>(attributes, std::move(inputs),
                                                                    kernels.sgd, threads);
}

}  // namespace troupe::kernels::cpu
