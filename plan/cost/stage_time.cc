#include "plan/cost/stage_time.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>

#include "model/cost.h"
#include "plan/cost/op_seconds.h"
#include "plan/layout/mesh.h"

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

// The seconds of an operation, computed once however often its piece is timed.
struct TimedOp {
  enum class Kind { kNothing, kCompute, kTransfer, kWait };
  Kind kind = Kind::kNothing;
  bool crosses = false;       // the group of a transfer spans islands
  bool asynchronous = false;  // a transfer that something waits for later
  bool last_microbatch = false;
  bool weight_gradient = false;  // belongs to W
  double seconds = 0;
  model::ValueId value = model::kNoValue;  // the first output of a transfer, or the input of a wait
};
using TimedOps = std::vector<TimedOp>;

// Those of B that belong to I, or to W.
TimedOps PartOf(const TimedOps& backward, bool weight_gradient) {
  TimedOps part;
  part.reserve(backward.size());
  std::ranges::copy_if(backward, std::back_inserter(part),
                       [&](const TimedOp& op) { return op.weight_gradient == weight_gradient; });
  return part;
}

class Clock {
 public:
  // `peak`: FLOPs per second.
  Clock(const v1::DeviceProfile& profile, double peak, const Mesh& mesh, int rank,
        const Program& program)
      : profile_(profile), compute_(profile, peak), mesh_(mesh), rank_(rank), program_(program) {}

  TimedOps TimesOf(const std::vector<Op>& ops) {
    TimedOps times;
    times.reserve(ops.size());
    for (const Op& op : ops) {
      TimedOp timed = TimeOf(op);
      timed.last_microbatch = op.last_microbatch;
      timed.weight_gradient = op.part == model::Part::kWeightGradient;
      times.push_back(timed);
    }
    return times;
  }

  // The time of the operations in `lists`. Operations run one after another on the device, and
  // transfers one after another on the links of their kind; an asynchronous transfer costs only the
  // part that the operations before its wait do not hide. `last_microbatch`: includes the
  // operations that only the last microbatch has.
  Time Of(std::initializer_list<const TimedOps*> lists, bool last_microbatch = false) const {
    Time time;
    // The time, in seconds after the first operation, at which the links are free; transfers within
    // an island do not wait for those across islands.
    double links_free[2] = {};
    // End times of asynchronous collectives, by first output.
    std::vector<double> ends(program_.values.size());
    const auto wait_until = [&time](double end) {
      time.communication += std::max(0.0, end - time.total());
    };
    for (const TimedOps* ops : lists) {
      for (const TimedOp& op : *ops) {
        if (op.last_microbatch && !last_microbatch) continue;
        if (op.kind == TimedOp::Kind::kCompute) time.compute += op.seconds;
        if (op.kind == TimedOp::Kind::kWait) wait_until(ends[static_cast<size_t>(op.value)]);
        if (op.kind != TimedOp::Kind::kTransfer) continue;
        double& free = links_free[op.crosses ? 1 : 0];
        free = std::max(free, time.total()) + op.seconds;
        if (op.asynchronous) {
          ends[static_cast<size_t>(op.value)] = free;
        } else {
          wait_until(free);
        }
      }
    }
    return time;
  }

  // The time of a transfer for which a neighbouring stage waits.
  Time Transfer(double bytes) {
    const CollectiveGroup pipe = {CollectiveGroup::Kind::kAxes,
                                  static_cast<uint8_t>(1u << static_cast<int>(Axis::kPipe))};
    return {0, LinkUse{1, bytes}.SecondsOn(LinkOf(Crosses(pipe)))};
  }

 private:
  TimedOp TimeOf(const Op& op) {
    TimedOp timed;
    // A copy is a view.
    if (op.kind == model::OpKind::kCopy) return timed;
    if (op.kind == model::OpKind::kWait) {
      return {.kind = TimedOp::Kind::kWait, .value = op.inputs[0]};
    }
    const std::optional<model::CollectiveCost> collective = model::CollectiveCostOf(program_, op);
    if (!collective) {
      return {.kind = TimedOp::Kind::kCompute, .seconds = compute_.Of(op, program_)};
    }
    timed.kind = TimedOp::Kind::kTransfer;
    timed.crosses = Crosses(collective->group);
    timed.asynchronous = op.asynchronous && !profile_.transfers_need_cores();
    const int ranks = model::GroupSize({mesh_.degrees(), {}}, collective->group);
    timed.seconds = LinkUseOf(*collective, ranks).SecondsOn(LinkOf(timed.crosses));
    if (!op.outputs.empty()) timed.value = op.outputs[0];
    return timed;
  }

  // The slowest link that a group spans.
  const v1::LinkProfile& LinkOf(bool crosses) const {
    return crosses ? profile_.fabric() : profile_.island();
  }

  // Whether the group spans islands, which have consecutive ranks.
  bool Crosses(const CollectiveGroup& group) {
    for (const auto& [known, crosses] : crosses_) {
      if (known == group) return crosses;
    }
    const std::vector<int> ranks = group.kind == CollectiveGroup::Kind::kOwners
                                       ? mesh_.GroupOf(rank_, Axis::kPipe)
                                   : group.kind == CollectiveGroup::Kind::kAll
                                       ? mesh_.GroupOf(rank_, (1u << model::kNumAxes) - 1)
                                       : mesh_.GroupOf(rank_, group);
    const bool crosses = ranks.front() / profile_.devices_per_island() !=
                         ranks.back() / profile_.devices_per_island();
    crosses_.emplace_back(group, crosses);
    return crosses;
  }

  const v1::DeviceProfile& profile_;
  const ComputeSeconds compute_;
  const Mesh& mesh_;
  const int rank_;
  const Program& program_;
  std::vector<std::pair<CollectiveGroup, bool>>
      crosses_;  // whether each group seen so far crosses islands
};

double BytesOf(const Program& program, model::ValueId id) {
  return id == model::kNoValue ? 0 : static_cast<double>(program.value(id).bytes());
}

}  // namespace

StageTime TimeOfStage(const v1::Plan& plan, const v1::DeviceProfile& profile, double peak,
                      const StageRun& run, const Program& program) {
  const Mesh mesh(plan.mesh());
  const int rank = mesh.RankOf({{run.pipe_rank, 0, 0, 0, 0, 0}});
  Clock clock(profile, peak, mesh, rank, program);
  StageTime stage;
  const TimedOps update = clock.TimesOf(program.update);
  Time in_schedule, once = clock.Of({&update});
  for (size_t c = 0; c < program.chunks.size(); ++c) {
    const model::ChunkInterface& chunk = program.chunks[c];
    const auto times_of = [&](Piece piece) {
      return clock.TimesOf(program.Ops(static_cast<int>(c), piece));
    };
    const TimedOps forward_ops = times_of(Piece::kForward);
    const TimedOps backward_ops = times_of(Piece::kBackward);
    const Time forward_alone = clock.Of({&forward_ops});
    const Time backward_alone = clock.Of({&backward_ops});
    const TimedOps input_gradient_ops = PartOf(backward_ops, /*weight_gradient=*/false);
    Time forward = forward_alone, input_gradient = clock.Of({&input_gradient_ops});
    // In B the asynchronous transfers of I may overlap with W.
    Time weight_gradient = backward_alone - input_gradient;
    if (run.split_backward) {
      const TimedOps weight_gradient_ops = PartOf(backward_ops, /*weight_gradient=*/true);
      weight_gradient = clock.Of({&weight_gradient_ops});
    }
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
    const TimedOps unshard_ops = times_of(Piece::kUnshard);
    const TimedOps reduce_ops = times_of(Piece::kReduce);
    once += clock.Of({&unshard_ops, &forward_ops}) - forward_alone;
    once += clock.Of({&backward_ops, &reduce_ops}, true) - backward_alone;
  }
  stage.outside_schedule = once.total();
  stage.compute = in_schedule.compute + once.compute;
  stage.communication = in_schedule.communication + once.communication;
  return stage;
}

}  // namespace troupe
