// A whole program on any backend, for tests: parameters from a seed, random samples, steps.
#ifndef TROUPE_KERNELS_PROGRAM_RUN_H_
#define TROUPE_KERNELS_PROGRAM_RUN_H_

#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "model/build.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"

namespace troupe::kernels {

// One microbatch of a program with embedding and head in one chunk.
struct Microbatch {
  std::vector<double> tokens, positions, targets, weights;
  std::vector<double> documents;  // only of a program with a document mask
  std::vector<double> samples;    // {step, slot} of each sample, only of a program with dropout
};

class ProgramRun {
 public:
  // Fails the process on an error. Parameters are those of `seed`. With communicators, all ranks
  // make the same calls.
  ProgramRun(Backend& backend, const model::BuildOptions& options, uint64_t seed,
             bool split_backward = false, const FindCommunicator& find_communicator = nullptr);

  const model::Program& program() const { return program_; }
  Executable& executable() { return *executable_; }

  // Random tokens and targets; the last of every five weights is 0.
  Microbatch MakeMicrobatch(uint64_t seed) const;

  // F of one microbatch and its derivative (B, or I and W apart); returns {Σ weight·nll, Σ weight}
  // of it. With communicators a step has one microbatch: its gradients are summed at once.
  std::vector<double> Train(const Microbatch& microbatch, bool first_microbatch);
  // F alone, with the draws of `microbatch` if it has dropout.
  std::vector<double> Evaluate(const Microbatch& microbatch);
  // Reduce and Update with the totals so far; they are zeroed. Returns the control word.
  std::vector<double> Update(double learning_rate);

  std::vector<double> Read(model::ValueId value);
  void Write(model::ValueId value, const std::vector<double>& numbers);

 private:
  std::vector<double> Forward(const Microbatch& microbatch, const RunOptions& options);

  model::Program program_;
  model::MemoryPlan plan_;
  std::unique_ptr<Executable> executable_;
  bool split_backward_;
  std::vector<double> totals_ = {0.0, 0.0};
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_PROGRAM_RUN_H_
