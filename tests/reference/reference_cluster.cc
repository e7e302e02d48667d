#include "tests/reference/reference_cluster.h"

#include <cmath>
#include <memory>

#include "base/check.h"
#include "base/random.h"
#include "base/sample_schema.h"
#include "collective/loopback/loopback_cluster.h"
#include "kernels/reference/reference_backend.h"
#include "model/initialize.h"
#include "model/program/control_word.h"
#include "model/program/memory_plan.h"
#include "model/testing.h"
#include "worker/executor/communicators.h"

namespace troupe {
namespace {

using model::Axis;
using model::Piece;
using model::ValueId;

model::PerAxis Degrees(const ReferenceRun& run) {
  model::PerAxis degrees;
  degrees[Axis::kDataReplicate] = run.data;
  degrees[Axis::kTensor] = run.tensor;
  degrees[Axis::kPipe] = run.pipe;
  return degrees;
}

// One rank: its prepared program, and the steps of its thread.
class ReferenceRank {
 public:
  ReferenceRank(const ReferenceRun& run, int rank, LoopbackCluster& cluster)
      : run_(run),
        mesh_{Mesh(Degrees(run)), 0, run.pipe - 1},
        microbatches_(static_cast<int>(run.global_batch_size / run.data / run.micro_batch_size)) {
    model::MeshView view;
    view.degrees = Degrees(run);
    view.coordinates = mesh_.mesh.CoordinatesOf(rank);
    stage_ = view.coordinates[Axis::kPipe];
    data_rank_ = view.coordinates[Axis::kDataReplicate];
    model::BuildOptions options =
        model::StageOptions(run.model, view, run.micro_batch_size, run.sequence_length);
    options.optimizer.max_norm = run.max_norm;
    options.bucket_elements = run.bucket_elements;
    options.fuse = run.fuse;
    program_ = model::BuildProgram(options).value();
    plan_ = model::PlanMemory(program_, {microbatches_}, run.split_backward, 1);
    std::vector<int> pipe_rank_of_chunk;
    for (int stage = 0; stage < run.pipe; ++stage) pipe_rank_of_chunk.push_back(stage);
    CollectiveNetwork& network = cluster.network(rank);
    communicators_ =
        Communicators::Make(program_, mesh_, rank, pipe_rank_of_chunk, network).value();
    executable_ = kernels::ReferenceBackend()
                      .Prepare(program_, plan_,
                               [this](const model::CollectiveGroup& group) {
                                 return communicators_.Find(group);
                               })
                      .value();
    TROUPE_CHECK_OK(network.Connect(cluster.addresses(), std::chrono::seconds(30)));
    Initialize();
  }

  StepNumbers Step(int step) {
    Fill(program_.loss_totals, {0, 0});
    Fill(program_.learning_rate, {1e-2});
    // All forwards, then all backwards: any other order of a schedule gives the same sums.
    std::vector<CollectiveHandle> sends;
    for (int m = 0; m < microbatches_; ++m) Forward(step, m, sends);
    for (int m = 0; m < microbatches_; ++m) Backward(m, sends);
    for (CollectiveHandle& send : sends) TROUPE_CHECK_OK(send.Wait());
    TROUPE_CHECK_OK(executable_->Run(0, Piece::kReduce, 0, {}));
    std::vector<double> control(model::kControlLanes, 0.0);
    Fill(program_.control_word, control);
    TROUPE_CHECK_OK(executable_->RunUpdate());
    const double* reduced = static_cast<double*>(executable_->Address(program_.control_word, 0));
    TROUPE_CHECK(reduced[model::kLaneNonfinite] == 0, "not finite");
    return {reduced[model::kLaneLoss] / reduced[model::kLaneWeight],
            std::sqrt(reduced[model::kLaneSumOfSquares]) / reduced[model::kLaneWeight]};
  }

 private:
  // The reference's elements are float64 for any dtype.
  void Fill(ValueId value, const std::vector<double>& numbers, int buffer = 0) {
    if (value == model::kNoValue) return;
    TROUPE_CHECK(static_cast<int64_t>(numbers.size()) == program_.value(value).elements());
    std::copy(numbers.begin(), numbers.end(),
              static_cast<double*>(executable_->Address(value, buffer)));
  }

  size_t Bytes(ValueId value) const {
    return static_cast<size_t>(program_.value(value).elements()) * sizeof(double);
  }

  void Initialize() {
    for (const model::State& state : program_.states) {
      if (state.kind != model::StateKind::kWeight) continue;
      std::vector<double> numbers;
      for (const model::ParameterPart& part : PartsOf(program_, state)) {
        int64_t elements = 1;
        for (const int64_t extent : part.local_shape) elements *= extent;
        std::vector<float> initial(static_cast<size_t>(elements));
        model::FillInitial(run_.seed, state.initial, part, 0, initial);
        // Larger than in training, because otherwise the gradients of a small model would almost
        // vanish.
        const double scale = state.initial.kind == model::InitialValue::Kind::kNormal ? 10 : 1;
        for (const float x : initial) numbers.push_back(scale * x);
      }
      Fill(state.value, numbers);
    }
    TROUPE_CHECK_OK(executable_->RunInitialize());
    TROUPE_CHECK_OK(executable_->Run(0, Piece::kUnshard, 0, {}));
  }

  void WriteInputs(int step, int microbatch) {
    std::vector<double> tokens, positions, targets, weights;
    const int64_t slots = run_.global_batch_size / run_.data;
    for (int64_t s = 0; s < run_.micro_batch_size; ++s) {
      const int64_t slot = data_rank_ * slots + microbatch * run_.micro_batch_size + s;
      const uint64_t key = RandomKey(run_.seed, fmt::format("sample {} {}", step, slot));
      for (int64_t t = 0; t < run_.sequence_length; ++t) {
        const uint64_t vocab = static_cast<uint64_t>(run_.model.vocab_size);
        tokens.push_back(static_cast<double>(UniformBits(key, 3 * t) % vocab));
        targets.push_back(static_cast<double>(UniformBits(key, 3 * t + 1) % vocab));
        weights.push_back(static_cast<double>(UniformBits(key, 3 * t + 2) % 3) / 2);
        positions.push_back(static_cast<double>(t));
      }
    }
    const model::ChunkInterface& chunk = program_.chunks[0];
    Fill(chunk.Input(channels::kTokens), tokens, microbatch);
    Fill(chunk.Input(channels::kPositions), positions, microbatch);
    Fill(chunk.Input(channels::kTargets), targets, microbatch);
    Fill(chunk.Input(channels::kWeights), weights, microbatch);
  }

  void Forward(int step, int microbatch, std::vector<CollectiveHandle>& sends) {
    const model::ChunkInterface& chunk = program_.chunks[0];
    WriteInputs(step, microbatch);
    if (chunk.input != model::kNoValue) {
      TROUPE_CHECK_OK(
          communicators_.Link(stage_ - 1, LinkDirection::kActivation)
              ->Receive(executable_->Address(chunk.input, microbatch), Bytes(chunk.input), 0));
    }
    TROUPE_CHECK_OK(
        executable_->Run(0, Piece::kForward, microbatch, {.first_microbatch = microbatch == 0}));
    if (chunk.output != model::kNoValue) {
      sends.push_back(
          communicators_.Link(stage_, LinkDirection::kActivation)
              ->StartSend(executable_->Address(chunk.output, microbatch), Bytes(chunk.output), 1));
    }
  }

  void Backward(int microbatch, std::vector<CollectiveHandle>& sends) {
    const model::ChunkInterface& chunk = program_.chunks[0];
    if (chunk.output_gradient != model::kNoValue) {
      TROUPE_CHECK_OK(communicators_.Link(stage_, LinkDirection::kGradient)
                          ->Receive(executable_->Address(chunk.output_gradient, microbatch),
                                    Bytes(chunk.output_gradient), 0));
    }
    const kernels::RunOptions options = {.first_microbatch = microbatch == 0,
                                         .last_microbatch = microbatch + 1 == microbatches_};
    if (run_.split_backward) {
      TROUPE_CHECK_OK(executable_->Run(0, Piece::kInputGradient, microbatch, options));
    } else {
      TROUPE_CHECK_OK(executable_->Run(0, Piece::kBackward, microbatch, options));
    }
    if (chunk.input_gradient != model::kNoValue) {
      sends.push_back(communicators_.Link(stage_ - 1, LinkDirection::kGradient)
                          ->StartSend(executable_->Address(chunk.input_gradient, microbatch),
                                      Bytes(chunk.input_gradient), 1));
    }
    if (run_.split_backward)
      TROUPE_CHECK_OK(executable_->Run(0, Piece::kWeightGradient, microbatch, options));
  }

  const ReferenceRun& run_;
  const GroupMesh mesh_;
  const int microbatches_;
  int stage_ = 0, data_rank_ = 0;
  model::Program program_;
  model::MemoryPlan plan_;
  Communicators communicators_;
  std::unique_ptr<kernels::Executable> executable_;
};

}  // namespace

std::vector<StepNumbers> Train(const ReferenceRun& run) {
  const int ranks = run.data * run.tensor * run.pipe;
  NetworkOptions options;
  options.ranks_on_host = ranks;
  options.hang_limit = std::chrono::seconds(30);
  LoopbackCluster cluster(ranks, options);
  std::vector<std::vector<StepNumbers>> numbers(static_cast<size_t>(ranks));
  cluster.Run([&](int rank) {
    ReferenceRank one(run, rank, cluster);
    for (int step = 1; step <= run.steps; ++step)
      numbers[static_cast<size_t>(rank)].push_back(one.Step(step));
  });
  for (const auto& other : numbers) {
    for (int step = 0; step < run.steps; ++step) {
      TROUPE_CHECK(other[step].loss == numbers[0][step].loss &&
                       other[step].grad_norm == numbers[0][step].grad_norm,
                   "ranks disagree in step {} of {}", step + 1, ToText(run));
    }
  }
  return numbers[0];
}

std::string ToText(const ReferenceRun& run) {
  return fmt::format("data {} tensor {} pipe {}, batch {} in microbatches of {} x {}{}{}{}",
                     run.data, run.tensor, run.pipe, run.global_batch_size, run.micro_batch_size,
                     run.sequence_length, run.model.tie_word_embeddings ? ", tied" : "",
                     run.fuse ? "" : ", unfused", run.split_backward ? ", I and W apart" : "");
}

}  // namespace troupe
