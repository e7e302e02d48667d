// Runs a whole program on any backend, for tests: parameters from a seed, random samples, steps.
#ifndef TROUPE_KERNELS_TESTING_PROGRAM_RUN_H_
#define TROUPE_KERNELS_TESTING_PROGRAM_RUN_H_

#include <memory>
#include <vector>

#include "kernels/backend/backend.h"
#include "model/build.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"

namespace troupe::kernels {

// One microbatch of a program with embedding and head in one chunk.
struct Microbatch {
  std::vector<double> tokens, positions, targets, weights;
  std::vector<double> documents;  // empty unless the program has a document mask
  std::vector<double> samples;    // {step, slot} of each sample; empty without dropout
};

class ProgramRun {
 public:
  // Initializes the parameters from `seed`. Aborts the process on an error. With communicators, all
  // ranks must make the same calls.
  ProgramRun(Backend& backend, const model::BuildOptions& options, uint64_t seed,
             bool split_backward = false, const FindCommunicator& find_communicator = nullptr);

  const model::Program& program() const { return program_; }
  Executable& executable() { return *executable_; }

  // Random tokens and targets; the last of every five weights is 0.
  Microbatch MakeMicrobatch(uint64_t seed) const;

  // Runs F of one microbatch and its derivative (B, or I and W). Returns {Σ weight·nll, Σ weight}
  // of the microbatch. With communicators a step has one microbatch, so its gradients are reduced
  // at once.
  std::vector<double> Train(const Microbatch& microbatch, bool first_microbatch);
  // Runs F alone, with the dropout draws of `microbatch` if the program has dropout.
  std::vector<double> Evaluate(const Microbatch& microbatch);
  // Runs Reduce and Update with the totals so far, then zeroes the totals. Returns the control
  // word.
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

#endif  // TROUPE_KERNELS_TESTING_PROGRAM_RUN_H_
