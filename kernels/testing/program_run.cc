#include "kernels/testing/program_run.h"

#include "base/check.h"
#include "base/random.h"
#include "base/sample_schema.h"
#include "kernels/testing/testing.h"
#include "model/initialize.h"
#include "model/program/control_word.h"

namespace troupe::kernels {

using model::Piece;

ProgramRun::ProgramRun(Backend& backend, const model::BuildOptions& options, uint64_t seed,
                       bool split_backward, const FindCommunicator& find_communicator)
    : split_backward_(split_backward) {
  auto program = model::BuildProgram(options);
  TROUPE_CHECK_OK(program.status());
  program_ = std::move(*program);
  plan_ = model::PlanMemory(program_, {1}, split_backward, 2);
  auto executable = backend.Prepare(program_, plan_, find_communicator);
  TROUPE_CHECK_OK(executable.status());
  executable_ = std::move(*executable);
  TROUPE_CHECK_OK(executable_->Connect());
  for (const model::State& state : program_.states) {
    std::vector<float> numbers(static_cast<size_t>(program_.value(state.value).elements()));
    model::FillInitial(seed, program_, state, numbers);
    Write(state.value, {numbers.begin(), numbers.end()});
  }
  TROUPE_CHECK_OK(executable_->RunInitialize());
}

Microbatch ProgramRun::MakeMicrobatch(uint64_t seed) const {
  const model::ChunkInterface& chunk = program_.chunks[0];
  const int64_t rows = program_.value(chunk.Input(channels::kTokens)).elements();
  int64_t vocabulary = 0;
  int64_t tokens = rows;
  for (const model::Op& op : program_.Ops(0, Piece::kForward)) {
    if (op.kind == model::OpKind::kEmbedding)
      vocabulary = program_.value(op.inputs[1]).dims[0].global;
    if (op.kind == model::OpKind::kAttention) {
      tokens = std::get<model::AttentionAttributes>(op.attributes).tokens;
    }
  }
  const uint64_t key = RandomKey(seed, "microbatch");
  Microbatch microbatch;
  for (int64_t r = 0; r < rows; ++r) {
    microbatch.tokens.push_back(static_cast<double>(UniformBits(key, 2 * r) % vocabulary));
    microbatch.targets.push_back(static_cast<double>(UniformBits(key, 2 * r + 1) % vocabulary));
    microbatch.positions.push_back(static_cast<double>(r % tokens));
    microbatch.documents.push_back(0.0);
    microbatch.weights.push_back(r % 5 == 4 ? 0.0 : 1.0);
  }
  if (const model::ValueId slots = chunk.Input(channels::kSlots); slots != model::kNoValue) {
    const int64_t samples = program_.value(slots).dims[0].local;
    for (int64_t slot = 0; slot < samples; ++slot) {
      microbatch.samples.push_back(1);
      microbatch.samples.push_back(static_cast<double>(slot));
    }
  }
  return microbatch;
}

std::vector<double> ProgramRun::Forward(const Microbatch& microbatch, const RunOptions& options) {
  const model::ChunkInterface& chunk = program_.chunks[0];
  Write(chunk.Input(channels::kTokens), microbatch.tokens);
  Write(chunk.Input(channels::kPositions), microbatch.positions);
  const model::ValueId documents = chunk.Input(channels::kDocuments);
  if (documents != model::kNoValue) Write(documents, microbatch.documents);
  const model::ValueId slots = chunk.Input(channels::kSlots);
  if (slots != model::kNoValue) Write(slots, microbatch.samples);
  Write(chunk.Input(channels::kTargets), microbatch.targets);
  Write(chunk.Input(channels::kWeights), microbatch.weights);
  Write(program_.loss_totals, {0.0, 0.0});
  TROUPE_CHECK_OK(executable_->Run(0, Piece::kUnshard, 0, options));
  TROUPE_CHECK_OK(executable_->Run(0, Piece::kForward, 0, options));
  return Read(program_.loss_totals);
}

std::vector<double> ProgramRun::Evaluate(const Microbatch& microbatch) {
  return Forward(microbatch, {.evaluate = true});
}

std::vector<double> ProgramRun::Train(const Microbatch& microbatch, bool first_microbatch) {
  const RunOptions options{.first_microbatch = first_microbatch, .last_microbatch = true};
  const std::vector<double> totals = Forward(microbatch, options);
  if (split_backward_) {
    TROUPE_CHECK_OK(executable_->Run(0, Piece::kInputGradient, 0, options));
    TROUPE_CHECK_OK(executable_->Run(0, Piece::kWeightGradient, 0, options));
  } else {
    TROUPE_CHECK_OK(executable_->Run(0, Piece::kBackward, 0, options));
  }
  for (int i = 0; i < 2; ++i) totals_[i] += totals[i];
  return totals;
}

std::vector<double> ProgramRun::Update(double learning_rate) {
  TROUPE_CHECK_OK(executable_->Run(0, Piece::kReduce, 0, {}));
  Write(program_.loss_totals, totals_);
  Write(program_.control_word, std::vector<double>(model::kControlLanes, 0.0));
  Write(program_.learning_rate, {learning_rate});
  TROUPE_CHECK_OK(executable_->RunUpdate());
  totals_ = {0.0, 0.0};
  return Read(program_.control_word);
}

std::vector<double> ProgramRun::Read(model::ValueId value) {
  return ReadNumbers(*executable_, program_, value);
}
void ProgramRun::Write(model::ValueId value, const std::vector<double>& numbers) {
  WriteNumbers(*executable_, program_, value, numbers);
}

}  // namespace troupe::kernels
