#include "bench/training_step.h"

#include <map>

#include <fmt/format.h>

#include "base/check.h"
#include "base/random.h"
#include "base/sample_schema.h"
#include "bench/program_bench.h"
#include "model/build.h"
#include "model/initialize.h"
#include "model/program/control_word.h"

namespace troupe::bench {

using model::Piece;

void AddShapeFlags(FlagParser& parser, StepShape* shape) {
  parser.AddText({"--model", "PRESET", "preset of the model"}, &shape->model);
  parser.AddNumber({"--batch", "SAMPLES", "samples in a step"}, {.least = 1}, &shape->batch);
  parser.AddNumber({"--sequence", "TOKENS", "tokens in a sample"}, {.least = 1}, &shape->sequence);
  parser.AddNumber({"--threads", "N", "threads of the backend"}, {.least = 1}, &shape->threads);
  parser.AddWord({"--dtype", "DTYPE", "compute dtype, float32 or bfloat16"},
                 {"float32", "bfloat16"}, &shape->dtype);
}

model::BuildOptions StepOptions(const StepShape& shape) {
  model::BuildOptions options;
  auto config = ConfigOf(shape.model);
  TROUPE_CHECK_OK(config.status());
  options.model = *config;
  options.model.hidden_dropout = shape.dropout_percent.value_or(0) / 100.0;
  options.chunks = {{0, 0, options.model.num_blocks(), true, true}};
  options.micro_batch_size = shape.batch;
  options.sequence_length = shape.sequence;
  options.document_mask = shape.document.has_value();
  options.compute_dtype =
      shape.dtype == "bfloat16" ? model::DType::kBFloat16 : model::DType::kFloat32;
  return options;
}

StepTokens RandomTokens(const StepShape& shape, int64_t vocabulary) {
  const int64_t rows = shape.batch * shape.sequence;
  StepTokens tokens;
  for (int64_t r = 0; r < rows; ++r) {
    tokens.tokens.push_back(static_cast<int32_t>(UniformBits(1, 2 * r) % vocabulary));
    tokens.targets.push_back(static_cast<int32_t>(UniformBits(1, 2 * r + 1) % vocabulary));
  }
  return tokens;
}

TrainingStep::TrainingStep(kernels::Backend& backend, const StepShape& shape) {
  const model::BuildOptions options = StepOptions(shape);
  auto program = model::BuildProgram(options);
  TROUPE_CHECK_OK(program.status());
  program_ = std::move(*program);
  plan_ = model::PlanMemory(program_, {1}, false, shape.threads);
  auto executable = backend.Prepare(program_, plan_, nullptr);
  TROUPE_CHECK_OK(executable.status());
  executable_ = std::move(*executable);
  FillParameters();
  FillSamples(shape, options.model.vocab_size);
  samples_.resize(2 * shape.batch);
}

double TrainingStep::Run() {
  ++step_;
  double totals[2] = {0, 0};
  TROUPE_CHECK_OK(executable_->BeginPart(kernels::StepPart::kGradients));
  Write(program_.loss_totals, totals, sizeof(totals));
  if (const model::ValueId samples = program_.chunks[0].Input(channels::kSlots);
      samples != model::kNoValue) {
    for (size_t i = 0; i < samples_.size(); ++i) {
      samples_[i] = i % 2 == 0 ? step_ : static_cast<int32_t>(i / 2);
    }
    Write(samples, samples_.data(), samples_.size() * sizeof(int32_t));
  }
  const kernels::RunOptions options{.first_microbatch = true};
  for (const Piece piece : {Piece::kUnshard, Piece::kForward, Piece::kBackward, Piece::kReduce}) {
    TROUPE_CHECK_OK(executable_->Run(0, piece, 0, options));
  }
  TROUPE_CHECK_OK(executable_->EndPart());
  TROUPE_CHECK_OK(executable_->BeginPart(kernels::StepPart::kUpdate));
  const double control[model::kControlLanes] = {};
  Write(program_.control_word, control, sizeof(control));
  Write(program_.learning_rate, &kStepLearningRate, sizeof(kStepLearningRate));
  TROUPE_CHECK_OK(executable_->RunUpdate());
  TROUPE_CHECK_OK(executable_->EndPart());
  TROUPE_CHECK_OK(
      executable_->Read(program_.loss_totals, 0, std::as_writable_bytes(std::span(totals))));
  return totals[0] / totals[1];
}

void TrainingStep::Write(model::ValueId value, const void* data, size_t bytes) {
  TROUPE_CHECK_OK(executable_->Write(value, 0, {static_cast<const std::byte*>(data), bytes}));
}

void TrainingStep::FillParameters() {
  std::vector<float> numbers;
  for (const model::State& state : program_.states) {
    numbers.resize(static_cast<size_t>(program_.value(state.value).elements()));
    model::FillInitial(1, program_, state, numbers);
    Write(state.value, numbers.data(), numbers.size() * sizeof(float));
  }
  TROUPE_CHECK_OK(executable_->RunInitialize());
}

void TrainingStep::FillSamples(const StepShape& shape, int64_t vocabulary) {
  const model::ChunkInterface& chunk = program_.chunks[0];
  const StepTokens tokens = RandomTokens(shape, vocabulary);
  const auto rows = static_cast<int64_t>(tokens.tokens.size());
  const int64_t document = shape.document.value_or(shape.sequence);
  std::vector<int32_t> positions(rows), documents(rows);
  const std::vector<float> weights(rows, 1.0f);
  for (int64_t r = 0; r < rows; ++r) {
    positions[r] = static_cast<int32_t>(r % shape.sequence % document);
    documents[r] = static_cast<int32_t>(r % shape.sequence) - positions[r];
  }
  const auto write = [&](std::string_view channel, const void* data) {
    Write(chunk.Input(channel), data, rows * sizeof(int32_t));
  };
  write(channels::kTokens, tokens.tokens.data());
  write(channels::kTargets, tokens.targets.data());
  write(channels::kPositions, positions.data());
  write(channels::kWeights, weights.data());
  if (shape.document.has_value()) write(channels::kDocuments, documents.data());
}

double SecondsOf(kernels::Backend& backend, const TrainingStep& training, int runs,
                 const kernels::KeepOp& keep) {
  const model::Program reduced = kernels::OnlyOps(training.program(), keep);
  auto executable = backend.Prepare(reduced, training.plan(), nullptr);
  TROUPE_CHECK_OK(executable.status());
  TROUPE_CHECK_OK(kernels::FillRandomly(**executable, reduced));
  std::vector<double> seconds;
  for (int run = 0; run <= runs; ++run) {  // the first run is warm-up
    const double start = Now();
    const kernels::RunOptions options{.first_microbatch = true};
    TROUPE_CHECK_OK((*executable)->Run(0, Piece::kForward, 0, options));
    TROUPE_CHECK_OK((*executable)->Run(0, Piece::kBackward, 0, options));
    TROUPE_CHECK_OK((*executable)->RunUpdate());
    if (run > 0) seconds.push_back(Now() - start);
  }
  return Median(seconds);
}

void PrintOperations(kernels::Backend& backend, const TrainingStep& training) {
  std::map<model::OpKind, int> kinds;
  for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
    for (const model::Op& op : training.program().Ops(0, piece)) ++kinds[op.kind];
  }
  for (const model::Op& op : training.program().update) ++kinds[op.kind];
  for (const auto& [kind, count] : kinds) {
    const double seconds = SecondsOf(
        backend, training, 3, [kind = kind](const model::Op& op) { return op.kind == kind; });
    fmt::print(
        "{{\"bench\": \"step_operations\", \"kind\": \"{}\", \"ops\": {}, \"seconds\": {:.5f}}}\n",
        model::Name(kind), count, seconds);
  }
}

}  // namespace troupe::bench
