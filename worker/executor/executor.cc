#include "worker/executor/executor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/failpoint.h"
#include "base/failure_cause.h"
#include "kernels/backend/update_decision.h"
#include "plan/job/job_rules.h"
#include "worker/executor/block_norms.h"
#include "worker/executor/expert_counts.h"
#include "worker/executor/nonfinite.h"
#include "worker/executor/sample_rows.h"
#include "worker/executor/validation_batch.h"

namespace troupe {
namespace {

using kernels::RunOptions;
using kernels::StepPart;
using model::Axis;
using model::kNoValue;
using model::Piece;

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::span<const double> Doubles(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const double*>(bytes.data()), bytes.size() / sizeof(double)};
}

// Ranks may compute NaNs of different sign; the error text must be identical on all ranks.
double WithoutSign(double number) { return std::isnan(number) ? std::nan("") : number; }

void CombineMinimum(const void*, void* accumulator, const void* other, size_t count) {
  auto* a = static_cast<double*>(accumulator);
  const auto* b = static_cast<const double*>(other);
  for (size_t i = 0; i < count; ++i) a[i] = std::min(a[i], b[i]);
}

constexpr model::CollectiveGroup kAllRanks{model::CollectiveGroup::Kind::kAll, 0};

}  // namespace

StatusOr<std::unique_ptr<Executor>> Executor::Make(ExecutorOptions options,
                                                   const model::Program& program,
                                                   const model::MemoryPlan& memory,
                                                   kernels::Backend& backend,
                                                   CollectiveNetwork& network,
                                                   const Dataset& dataset, StepProgress* progress) {
  if (options.actions.buffers != memory.buffers) {
    return InvalidArgument(
        "schedule and memory plan disagree on the number of in-flight microbatches per chunk");
  }
  std::unique_ptr<Executor> executor(new Executor(std::move(options), program, dataset, progress));
  const ExecutorOptions& made = executor->options_;
  progress->Enter(Phase::kBuild);
  executor->runs_ = RunsOf(made.actions, program);
  TROUPE_ASSIGN_OR_RETURN(
      executor->inputs_,
      ChunkInputs::Make(CurrentSampleSchema(), dataset.channels(), program, made.batch));
  TROUPE_ASSIGN_OR_RETURN(
      Communicators communicators,
      Communicators::Make(program, made.mesh, made.rank, made.pipe_rank_of_chunk, network));
  executor->communicators_ = std::move(communicators);
  Executor* const self = executor.get();
  TROUPE_ASSIGN_OR_RETURN(
      executor->executable_,
      backend.Prepare(program, memory, [self](const model::CollectiveGroup& group) {
        return self->communicators_->Find(group);
      }));
  for (const ActionRun& run : executor->runs_) {
    if (run.begins && run.ends) continue;
    const RankAction& action = made.actions.actions[static_cast<size_t>(run.action)];
    TROUPE_RETURN_IF_ERROR(executor->executable_->PrepareRun(
        action.chunk_index, action.piece, {.first_op = run.begin, .end_op = run.end}));
  }
  for (Communicator* const link : executor->communicators_->Links()) {
    TROUPE_RETURN_IF_ERROR(executor->executable_->AddLink(*link));
  }
  if (!executor->inputs_.rows().empty()) {
    executor->reader_ = std::make_unique<BatchReader>(
        dataset, executor->inputs_.rows(), made.batch.sequence_length,
        made.batch.FirstSlot(executor->data_rank(), 0), made.batch.slots_per_rank());
  }
  TROUPE_RETURN_IF_ERROR(executor->MakeFlights());
  TROUPE_ASSIGN_OR_RETURN(executor->validation_batch_,
                          ReadValidationBatch(dataset, executor->inputs_.rows(), made.batch,
                                              executor->data_rank(), made.validation_samples));
  return executor;
}

Executor::Executor(ExecutorOptions options, const model::Program& program, const Dataset& dataset,
                   StepProgress* progress)
    : options_(std::move(options)), program_(program), dataset_(dataset), progress_(progress) {}

Executor::~Executor() = default;

void Executor::Enter(Phase phase, int chunk, int microbatch) {
  progress_->Enter(phase, chunk, microbatch);
  if (trace_ != nullptr) trace_->Enter(phase, chunk, microbatch);
}

Status Executor::Start() {
  Enter(Phase::kConnect);
  TROUPE_RETURN_IF_ERROR(communicators_->CompareDigests(program_, options_.actions));
  return executable_->Connect();
}

Status Executor::FinishLoading(int64_t applied_step) {
  applied_step_ = submitted_step_ = applied_step;
  progress_->step.store(applied_step, std::memory_order_relaxed);
  if (program_.halted != kNoValue) {
    const double goes_on = 0;
    TROUPE_RETURN_IF_ERROR(
        executable_->Write(program_.halted, 0, std::as_bytes(std::span(&goes_on, 1))));
  }
  return executable_->RunInitialize();
}

StatusOr<std::vector<int64_t>> Executor::AgreeOnLeast(std::span<const int64_t> own) {
  TROUPE_CHECK(applied_step_ == submitted_step_, "a step is in flight");
  std::vector<double> least(own.begin(), own.end());
  if (Communicator* all = communicators_->Find(kAllRanks)) {
    const Reduction minimum{&CombineMinimum, nullptr, sizeof(double), "min"};
    TROUPE_RETURN_IF_ERROR(all->AllReduce(least.data(), least.size(), minimum, Purpose::kControl));
  }
  return std::vector<int64_t>(least.begin(), least.end());
}

Status Executor::MakeFlights() {
  std::vector<kernels::ValueBytes> results = {
      {program_.control_word, program_.value(program_.control_word).bytes()}};
  reported_totals_ = ReportedRouterTotals(program_);
  for (const model::ValueId id : reported_totals_)
    results.push_back({id, program_.value(id).bytes()});
  flights_.resize(static_cast<size_t>(options_.control_lag_steps) + 1);
  for (Flight& flight : flights_) {
    TROUPE_ASSIGN_OR_RETURN(flight.results, executable_->MakeDelayedRead(results));
  }
  return OkStatus();
}

std::optional<kernels::DeviceStalls> Executor::ConsumeStalls(const Flight& flight) {
  const std::optional<kernels::DeviceStalls> now = flight.results->stalls();
  if (!now) return std::nullopt;
  const kernels::DeviceStalls before = std::exchange(stalls_, *now);
  return *now - before;
}

Status Executor::SkipStalls(Flight* flight) {
  if (!flight->results->stalls()) return OkStatus();
  TROUPE_RETURN_IF_ERROR(flight->results->Start());
  TROUPE_RETURN_IF_ERROR(flight->results->Finish());
  stalls_ = *flight->results->stalls();
  return OkStatus();
}

bool Executor::ValidatesAfter(int64_t step) const {
  return ValidatedSteps{.interval = options_.validation_interval, .last = options_.steps}.Has(step);
}

bool Executor::MeasuresNormsOf(int64_t step) const {
  return options_.norms_interval > 0 && step % options_.norms_interval == 0;
}

Status Executor::SubmitGradients() {
  const bool is_ahead = submitted_step_ > applied_step_;
  TROUPE_CHECK(submitted_step_ - applied_step_ <= options_.control_lag_steps &&
                   !(is_ahead && DrainsAfter(submitted_step_)),
               "step {} was submitted too early", submitted_step_ + 1);
  TROUPE_CHECK(!has_gradients_, "the gradients of step {} are submitted twice",
               submitted_step_ + 1);
  Flight& flight = FlightOf(submitted_step_ + 1);
  flight.begin = std::chrono::steady_clock::now();
  flight.calls_before = executable_->device_calls();
  flight.result = {};
  StepResult& result = flight.result;
  result.step = submitted_step_ + 1;
  progress_->step.store(result.step, std::memory_order_relaxed);
  if (trace_ != nullptr) {
    if (is_ahead) trace_->EndStep();
    trace_->BeginStep(result.step);
    executable_->Observe(trace_->wants_operations() ? trace_ : nullptr);
    // Otherwise the time of the step in flight would count as the first operation's.
    if (is_ahead && trace_->wants_operations()) TROUPE_RETURN_IF_ERROR(executable_->Finish());
  }
  TROUPE_RETURN_IF_ERROR(HitFailpoint("step.begin"));
  TROUPE_RETURN_IF_ERROR(WithCause(HitFailpoint("step.device_fault"), cause::kDeviceFault));
  Enter(Phase::kReadBatch);
  if (reader_) {
    TROUPE_ASSIGN_OR_RETURN(batch_, reader_->Consume(result.step));
  }
  result.figures.set_data_wait_seconds(reader_ ? SecondsSince(flight.begin) : 0);
  result.event.set_learning_rate(LearningRate(options_.learning_rate, result.step));
  receive_wait_seconds_ = 0;
  TROUPE_RETURN_IF_ERROR(executable_->BeginPart(StepPart::kGradients));
  TROUPE_RETURN_IF_ERROR(ZeroLossTotals());
  TROUPE_RETURN_IF_ERROR(RunActions(result.step, batch_, true));
  TROUPE_RETURN_IF_ERROR(RunReduce());
  TROUPE_RETURN_IF_ERROR(executable_->EndPart());
  result.receive_wait_seconds = receive_wait_seconds_;
  has_gradients_ = true;
  return OkStatus();
}

Status Executor::SubmitUpdate(const ControlInputs& inputs) {
  TROUPE_CHECK(has_gradients_, "the update of step {} is submitted before its gradients",
               submitted_step_ + 1);
  Flight& flight = FlightOf(submitted_step_ + 1);
  StepResult& result = flight.result;
  const std::array<double, model::kControlLanes> control = ControlWordOf(inputs);
  Enter(Phase::kUpdate);
  TROUPE_RETURN_IF_ERROR(HitFailpoint("step.before_update"));
  TROUPE_RETURN_IF_ERROR(executable_->BeginPart(StepPart::kUpdate));
  TROUPE_RETURN_IF_ERROR(WriteLearningRate(result.event.learning_rate()));
  TROUPE_RETURN_IF_ERROR(
      executable_->Write(program_.control_word, 0, std::as_bytes(std::span(control))));
  TROUPE_RETURN_IF_ERROR(executable_->RunUpdate());
  TROUPE_RETURN_IF_ERROR(executable_->EndPart());
  TROUPE_RETURN_IF_ERROR(flight.results->Start());
  const kernels::DeviceCalls calls = executable_->device_calls();
  result.figures.set_host_syncs_per_step(static_cast<double>(
      calls.host_waits.value_or(0) - flight.calls_before.host_waits.value_or(0)));
  result.figures.set_graph_launches_per_step(static_cast<double>(
      calls.graph_launches.value_or(0) - flight.calls_before.graph_launches.value_or(0)));
  has_gradients_ = false;
  submitted_step_ = result.step;
  return OkStatus();
}

// The program itself fills the lanes of loss, weight, routing and sum of squares (control_totals,
// control_routed, sum_of_squares).
std::array<double, model::kControlLanes> Executor::ControlWordOf(
    const ControlInputs& inputs) const {
  std::array<double, model::kControlLanes> control = {};
  if (counts_samples()) {
    const std::span<const float> weights = batch_->Float32s(channels::kWeights);
    control[model::kLaneTokens] = static_cast<double>(
        std::count_if(weights.begin(), weights.end(), [](float weight) { return weight > 0; }));
    control[model::kLanePairs] = SeenPairs(batch_->Int32s(channels::kDocuments), batch_->samples(),
                                           options_.batch.sequence_length);
  }
  control[model::kLaneStop] = inputs.stop ? 1 : 0;
  control[model::kLaneTicketEnd] = static_cast<double>(inputs.ticket_end);
  control[model::kLaneRequestAttempt] = static_cast<double>(inputs.request_attempt);
  control[model::kLaneIntentKnown] = inputs.intent_known ? 1 : 0;
  return control;
}

StatusOr<StepResult> Executor::Complete() {
  TROUPE_CHECK(applied_step_ < submitted_step_, "no step is in flight");
  Flight& flight = FlightOf(applied_step_ + 1);
  StepResult& result = flight.result;
  if (options_.control_lag_steps > 0) {
    progress_->step.store(result.step, std::memory_order_relaxed);
    Enter(Phase::kWaitResult);
  }
  if (executable_->device_calls().host_waits && result.step == submitted_step_) {
    result.figures.set_host_syncs_per_step(result.figures.host_syncs_per_step() + 1);
  }
  TROUPE_RETURN_IF_ERROR(flight.results->Finish());
  result.stalls = ConsumeStalls(flight);
  const std::span<const double> control = Doubles(flight.results->bytes(0));
  ReadControlWord(control, options_.batch, &result);
  for (size_t i = 0; i < reported_totals_.size(); ++i) {
    AddExpertLoad(Doubles(flight.results->bytes(1 + i)), &result.expert_load);
  }
  const double weight = control[model::kLaneWeight];
  if (kernels::IsNonfinite(control.data())) {
    const int rank = static_cast<int>(control[model::kLaneNonfinite]) - 1;
    TROUPE_ASSIGN_OR_RETURN(result.nonfinite, FindNonfinite(result.step, rank));
    if (result.nonfinite.empty()) {
      result.nonfinite = rank >= 0 ? fmt::format("loss or gradient of rank {} is not finite", rank)
                                   : "loss or gradient norm is not finite";
    }
    if (options_.on_nonfinite == v1::ON_NONFINITE_FAIL) {
      const Status failed = OutOfRange(
          "step {}: {} (loss {}, gradient norm {}, Σ weight {}); training.on_nonfinite is fail",
          result.step, result.nonfinite, WithoutSign(result.event.loss()),
          WithoutSign(result.event.grad_norm()), weight);
      return WithCause(failed, cause::kNonfinite);
    }
    result.event.set_skipped(true);
  }
  applied_step_ = result.step;
  TROUPE_RETURN_IF_ERROR(HitFailpoint("step.after_update"));
  result.step_seconds = SecondsSince(std::max(flight.begin, completed_at_));
  completed_at_ = std::chrono::steady_clock::now();
  if (MeasuresNormsOf(result.step)) {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<v1::BlockNorm> norms,
                            MeasureBlockNorms(program_, *executable_, options_.block_letters,
                                              weight, communicators_->Find(kAllRanks)));
    result.event.mutable_norms()->Assign(norms.begin(), norms.end());
  }
  if (ValidatesAfter(result.step)) {
    TROUPE_ASSIGN_OR_RETURN(const std::optional<double> loss, Validate());
    if (loss) {
      result.event.set_validation_loss(*loss);
      TROUPE_RETURN_IF_ERROR(SkipStalls(&flight));
    }
  }
  if (trace_ != nullptr && applied_step_ == submitted_step_) trace_->EndStep();
  return std::move(result);
}

StatusOr<std::string> Executor::FindNonfinite(int64_t step, int culprit) {
  const bool runs_again =
      options_.on_nonfinite == v1::ON_NONFINITE_FAIL && executable_->can_inspect_operations();
  // Later steps have overwritten the numbers of an earlier step.
  const bool is_last = step == submitted_step_;
  if (!is_last && !runs_again) return std::string();
  TROUPE_RETURN_IF_ERROR(executable_->Finish());
  NonfiniteFinding finding;
  const auto find_tensor = [&] {
    const auto find = executable_->keeps_gradients() ? NonfiniteTensor : NonfiniteWeightOrLoss;
    return find(program_, *executable_, options_.block_letters);
  };
  if (is_last) {
    TROUPE_ASSIGN_OR_RETURN(finding.tensor, find_tensor());
  }
  if (runs_again) {
    NonfiniteOrigin origin(program_, *executable_);
    TROUPE_RETURN_IF_ERROR(RunAgain(step, !is_last, &origin));
    finding.operation = origin.operation();
  }
  if (!is_last) {
    TROUPE_ASSIGN_OR_RETURN(finding.tensor, find_tensor());
  }
  return DescribeNonfinite(finding, culprit, communicators_->Find(kAllRanks));
}

// The update was not applied, so the same step computes the same numbers again.
Status Executor::RunAgain(int64_t step, bool reduces, kernels::OperationObserver* observer) {
  if (reader_ && step != submitted_step_) {
    TROUPE_ASSIGN_OR_RETURN(batch_, reader_->Consume(step));
  }
  executable_->Observe(observer);
  Status ran = ZeroLossTotals();
  if (ran.ok()) ran = RunActions(step, batch_, reduces);
  if (ran.ok() && reduces) ran = RunReduce();
  executable_->Observe(nullptr);
  TROUPE_RETURN_IF_ERROR(ran);
  return executable_->Finish();
}

Status Executor::ZeroLossTotals() {
  if (program_.loss_totals == kNoValue) return OkStatus();
  const std::array<double, 2> zero = {};
  return executable_->Write(program_.loss_totals, 0, std::as_bytes(std::span(zero)));
}

Status Executor::WriteLearningRate(double learning_rate) {
  const auto rate = static_cast<float>(learning_rate);
  return executable_->Write(program_.learning_rate, 0, std::as_bytes(std::span(&rate, 1)));
}

bool Executor::counts_loss() const {
  // The combined loss is equal on all ranks of a tensor group, so one of them counts it.
  return program_.mesh.coordinates[Axis::kTensor] == 0 &&
         std::any_of(program_.chunks.begin(), program_.chunks.end(),
                     [](const auto& chunk) { return chunk.Input(channels::kTargets) != kNoValue; });
}

// Context ranks have the same samples, so one of them counts these; each counts the loss of its own
// rows.
bool Executor::counts_samples() const {
  return counts_loss() && program_.mesh.coordinates[Axis::kContext] == 0;
}

StatusOr<std::array<double, 2>> Executor::LossTotals() {
  std::array<double, 2> totals = {};
  if (counts_loss()) {
    TROUPE_RETURN_IF_ERROR(
        executable_->Read(program_.loss_totals, 0, std::as_writable_bytes(std::span(totals))));
  }
  return totals;
}

StatusOr<std::optional<double>> Executor::Validate() {
  if (!validation_batch_) return std::optional<double>();
  TROUPE_CHECK(applied_step_ == submitted_step_, "a step is in flight");
  Enter(Phase::kValidate);
  TROUPE_RETURN_IF_ERROR(ZeroLossTotals());
  const int64_t rows = validation_batch_->samples();
  RunOptions run;
  run.evaluate = true;
  // The last update changed only each rank's own block of sharded parameters.
  for (size_t c = 0; c < program_.chunks.size(); ++c) {
    TROUPE_RETURN_IF_ERROR(executable_->Run(static_cast<int>(c), Piece::kUnshard, 0, {}));
  }
  for (int64_t round = 0; round < rows / options_.batch.micro_batch_size; ++round) {
    for (size_t c = 0; c < program_.chunks.size(); ++c) {
      RankAction action;
      action.chunk = program_.chunks[c].chunk;
      action.chunk_index = static_cast<int>(c);
      action.microbatch = static_cast<int>(round);
      action.buffer = static_cast<int>(round % options_.actions.buffers[c]);
      // Neighbouring chunks of this rank pass activations in its memory.
      const auto is_own = [&](size_t other, int chunk) {
        return other < program_.chunks.size() && program_.chunks[other].chunk == chunk;
      };
      const bool has_below = c > 0 && is_own(c - 1, action.chunk - 1);
      if (has_below) {
        action.buffer_below = static_cast<int>(round % options_.actions.buffers[c - 1]);
      }
      action.receives = program_.chunks[c].input != kNoValue && !has_below;
      action.sends = program_.chunks[c].output != kNoValue && !is_own(c + 1, action.chunk + 1);
      TROUPE_RETURN_IF_ERROR(
          RunAction(action, {&*validation_batch_, round * options_.batch.micro_batch_size}, run));
    }
  }
  TROUPE_RETURN_IF_ERROR(WaitSends());
  TROUPE_RETURN_IF_ERROR(executable_->Finish());
  TROUPE_ASSIGN_OR_RETURN(auto totals, LossTotals());
  if (Communicator* all = communicators_->Find(kAllRanks)) {
    TROUPE_RETURN_IF_ERROR(
        all->AllReduce(totals.data(), totals.size(), SumFloat64(), Purpose::kControl));
  }
  return std::optional<double>(MeanLoss(totals[0], totals[1]));
}

}  // namespace troupe
