#include "plan/cost/step_time.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <vector>

#include "model/cost.h"
#include "model/program/op_rules.h"
#include "plan/cost/stage_cost.h"
#include "plan/device/device_profile.h"
#include "plan/job/job_choices.h"
#include "plan/layout/mesh.h"
#include "plan/validate/stage_inputs.h"

namespace troupe {
namespace {

using model::Axis;
using model::CollectiveGroup;
using model::Op;
using model::Piece;
using model::Program;

struct Time {
  double compute = 0;
  double communication = 0;
  double total() const { return compute + communication; }
  Time& operator+=(const Time& other) {
    compute += other.compute;
    communication += other.communication;
    return *this;
  }
  Time operator-(const Time& other) const {
    return {compute - other.compute, communication - other.communication};
  }
};

class Clock {
 public:
  // `peak`: FLOPs per second.
  Clock(const v1::DeviceProfile& profile, double peak, const Mesh& mesh, int rank)
      : profile_(profile),
        product_flops_(peak * profile.product_efficiency()),
        attention_flops_(peak * AttentionEfficiency(profile)),
        mesh_(mesh),
        rank_(rank) {}

  // The time of the operations in `lists`. Operations run one after another on the device, and
  // transfers one after another on the links of their kind; an asynchronous transfer costs only the
  // part that the operations before its wait do not hide. `last_microbatch`: includes the
  // operations that only the last microbatch has.
  Time Of(const Program& program, std::initializer_list<const std::vector<Op>*> lists,
          bool last_microbatch = false) const {
    Time time;
    // The time, in seconds after the first operation, at which the links are free; transfers within
    // an island do not wait for those across islands.
    double links_free[2] = {};
    // End times of asynchronous collectives, by first output.
    std::map<model::ValueId, double> ends;
    const auto wait_until = [&time](double end) {
      time.communication += std::max(0.0, end - time.total());
    };
    for (const std::vector<Op>* ops : lists) {
      for (const Op& op : *ops) {
        if (op.last_microbatch && !last_microbatch) continue;
        // A copy is a view.
        if (op.kind == model::OpKind::kCopy) continue;
        if (op.kind == model::OpKind::kWait) {
          wait_until(ends[op.inputs[0]]);
          continue;
        }
        const auto collectives = model::Collectives(program, {op});
        for (const auto& collective : collectives) {
          double& free = links_free[Crosses(collective.group) ? 1 : 0];
          free = std::max(free, time.total()) + Seconds(collective);
          if (op.asynchronous && !profile_.transfers_need_cores()) {
            ends[op.outputs[0]] = free;
          } else {
            wait_until(free);
          }
        }
        if (!collectives.empty()) continue;
        const double products = model::ModelFlops(op, program) /
                                (model::IsAttention(op.kind) ? attention_flops_ : product_flops_);
        const auto bytes = static_cast<double>(model::BytesMoved(op, program));
        const double memory = bytes / profile_.memory_bytes_per_second();
        time.compute += std::max(products, memory) + profile_.launch_seconds();
      }
    }
    return time;
  }

  // The time of a transfer for which a neighbouring stage waits.
  Time Transfer(double bytes) const {
    const v1::LinkProfile& link = LinkOf(CollectiveGroup{
        CollectiveGroup::Kind::kAxes, static_cast<uint8_t>(1u << static_cast<int>(Axis::kPipe))});
    return {0, link.latency_seconds() + bytes / link.bytes_per_second()};
  }

 private:
  double Seconds(const model::CollectiveCost& collective) const {
    const v1::LinkProfile& link = LinkOf(collective.group);
    const int ranks = model::GroupSize({mesh_.degrees(), {}}, collective.group);
    // In a ring, for a reduction and for a gather, each part passes from rank to rank.
    const double rounds =
        collective.kind == model::OpKind::kShift      ? 1.0
        : collective.kind == model::OpKind::kRelayout ? 2.0  // each chunk to its rank
        : collective.sent_bytes > static_cast<double>(collective.payload_bytes) ? 2.0 * (ranks - 1)
                                                                                : ranks - 1;
    return rounds * link.latency_seconds() + collective.sent_bytes / link.bytes_per_second();
  }

  // The slowest link that the group spans.
  const v1::LinkProfile& LinkOf(const CollectiveGroup& group) const {
    return Crosses(group) ? profile_.fabric() : profile_.island();
  }

  // Whether the group spans islands, which have consecutive ranks.
  bool Crosses(const CollectiveGroup& group) const {
    const std::vector<int> ranks = group.kind == CollectiveGroup::Kind::kOwners
                                       ? mesh_.GroupOf(rank_, Axis::kPipe)
                                   : group.kind == CollectiveGroup::Kind::kAll
                                       ? mesh_.GroupOf(rank_, (1u << model::kNumAxes) - 1)
                                       : mesh_.GroupOf(rank_, group);
    return ranks.front() / profile_.devices_per_island() !=
           ranks.back() / profile_.devices_per_island();
  }

  const v1::DeviceProfile& profile_;
  const double product_flops_, attention_flops_;  // attained per second
  const Mesh& mesh_;
  const int rank_;
};

double BytesOf(const Program& program, model::ValueId id) {
  return id == model::kNoValue ? 0 : static_cast<double>(program.value(id).bytes());
}

StatusOr<Schedule> ScheduleOf(const v1::Plan& plan) {
  Schedule schedule;
  schedule.name = plan.schedule().name();
  schedule.microbatches = plan.schedule().microbatches();
  schedule.chunks.resize(static_cast<size_t>(plan.schedule().ranks_size()));
  for (const auto& chunk : plan.chunks()) {
    schedule.chunks[static_cast<size_t>(chunk.pipe_rank())].push_back(chunk.chunk());
  }
  for (const auto& rank : plan.schedule().ranks()) {
    auto& actions = schedule.actions.emplace_back();
    for (const std::string& text : rank.actions()) {
      TROUPE_ASSIGN_OR_RETURN(const std::vector<Action> joined, ParseActions(text));
      actions.insert(actions.end(), joined.begin(), joined.end());
    }
  }
  return schedule;
}

}  // namespace

StageTime TimeOfStage(const v1::Plan& plan, const v1::DeviceProfile& profile,
                      double flops_per_second, const StageRun& run, const Program& program) {
  const Mesh mesh(plan.mesh());
  const int rank = mesh.RankOf({{run.pipe_rank, 0, 0, 0, 0, 0}});
  const Clock clock(profile, flops_per_second, mesh, rank);
  StageTime stage;
  Time in_schedule, once = clock.Of(program, {&program.update});
  for (size_t c = 0; c < program.chunks.size(); ++c) {
    const int index = static_cast<int>(c);
    const model::ChunkInterface& chunk = program.chunks[c];
    Time forward = clock.Of(program, {&program.Ops(index, Piece::kForward)});
    Time input_gradient = clock.Of(program, {&program.Ops(index, Piece::kInputGradient)});
    // In B the asynchronous transfers of I may overlap with W.
    const std::vector<Op>& backward = program.Ops(index, Piece::kBackward);
    const Time weight_gradient =
        run.split_backward ? clock.Of(program, {&program.Ops(index, Piece::kWeightGradient)})
                           : clock.Of(program, {&backward}) - input_gradient;
    // Neighbouring chunks of one rank exchange data in the rank's memory.
    const auto is_elsewhere = [&](int other) {
      return plan.chunks(other).pipe_rank() != run.pipe_rank;
    };
    if (chunk.output != model::kNoValue && is_elsewhere(chunk.chunk + 1)) {
      forward += clock.Transfer(BytesOf(program, chunk.output));
    }
    if (chunk.input_gradient != model::kNoValue && is_elsewhere(chunk.chunk - 1)) {
      input_gradient += clock.Transfer(BytesOf(program, chunk.input_gradient));
    }
    stage.chunks.push_back({forward.total(), input_gradient.total(), weight_gradient.total()});
    for (const Time& time : {forward, input_gradient, weight_gradient}) {
      in_schedule.compute += run.microbatches * time.compute;
      in_schedule.communication += run.microbatches * time.communication;
    }
    // The parts of Unshard and Reduce that the first forward and the last backward do not hide.
    const std::vector<Op>& first = program.Ops(index, Piece::kForward);
    once += clock.Of(program, {&program.Ops(index, Piece::kUnshard), &first}) -
            clock.Of(program, {&first});
    once += clock.Of(program, {&backward, &program.Ops(index, Piece::kReduce)}, true) -
            clock.Of(program, {&backward});
  }
  stage.outside_schedule = once.total();
  stage.compute = in_schedule.compute + once.compute;
  stage.communication = in_schedule.communication + once.communication;
  return stage;
}

StatusOr<std::vector<StageTime>> TimesOfStages(const v1::JobSpec& spec, const v1::Plan& plan,
                                               const Schedule& schedule,
                                               const v1::DeviceProfile& profile,
                                               double flops_per_second) {
  std::vector<StageTime> stages;
  for (int pipe_rank = 0; pipe_rank < plan.mesh().pipe(); ++pipe_rank) {
    TROUPE_ASSIGN_OR_RETURN(const Program program, BuildStage(spec, plan, pipe_rank));
    const auto& actions = schedule.actions[static_cast<size_t>(pipe_rank)];
    const StageRun run = {pipe_rank, schedule.microbatches,
                          CountLiveMicrobatches(actions).split_backward};
    stages.push_back(TimeOfStage(plan, profile, flops_per_second, run, program));
  }
  return stages;
}

std::vector<ActionCosts> CostsByChunk(const v1::Plan& plan, const std::vector<StageTime>& stages) {
  std::vector<ActionCosts> costs(static_cast<size_t>(plan.chunks_size()));
  std::vector<size_t> seen(stages.size());
  for (const auto& chunk : plan.chunks()) {
    const auto stage = static_cast<size_t>(chunk.pipe_rank());
    costs[static_cast<size_t>(chunk.chunk())] = stages[stage].chunks[seen[stage]++];
  }
  return costs;
}

StatusOr<StepTime> StepTimeOf(const v1::Plan& plan, const Schedule& schedule,
                              double flops_per_second, const std::vector<StageTime>& stages) {
  StepTime step;
  double outside_schedule = 0;
  for (const StageTime& stage : stages) {
    outside_schedule = std::max(outside_schedule, stage.outside_schedule);
    step.compute_seconds = std::max(step.compute_seconds, stage.compute);
    step.communication_seconds = std::max(step.communication_seconds, stage.communication);
  }
  TROUPE_ASSIGN_OR_RETURN(const SimulationResult simulated,
                          Simulate(schedule, CostsByChunk(plan, stages),
                                   {.indivisible_pairs = plan.schedule().interleaves_pairs()}));
  step.seconds = simulated.makespan + outside_schedule;
  step.bubble_ratio = simulated.bubble_ratio;
  step.mfu =
      plan.model_flops_per_step() / (step.seconds * Mesh(plan.mesh()).ranks() * flops_per_second);
  return step;
}

StatusOr<double> PeakFor(const v1::JobSpec& spec, const v1::DeviceProfile& profile) {
  const bool bfloat16 = ChoicesOf(spec).compute_dtype == model::DType::kBFloat16;
  const double peak =
      bfloat16 ? profile.bfloat16_flops_per_second() : profile.float32_flops_per_second();
  if (peak > 0) return peak;
  return InvalidArgument(
      "device profile {}: {}_flops_per_second is absent, but the job computes in {}",
      profile.name(), spec.training().compute_dtype(), spec.training().compute_dtype());
}

StatusOr<StepTime> EstimateStepTime(const v1::JobSpec& spec, const v1::Plan& plan,
                                    const v1::DeviceProfile& profile) {
  TROUPE_ASSIGN_OR_RETURN(const double peak, PeakFor(spec, profile));
  TROUPE_ASSIGN_OR_RETURN(const Schedule schedule, ScheduleOf(plan));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<StageTime> stages,
                          TimesOfStages(spec, plan, schedule, profile, peak));
  return StepTimeOf(plan, schedule, peak, stages);
}

}  // namespace troupe
