#include "plan/schedules/simulator.h"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

constexpr double kNotYet = -1;

// The completion time of each part of (chunk, microbatch).
struct Done {
  double forward = kNotYet;
  double input_gradient = kNotYet;
  double weight_gradient = kNotYet;
};

class Simulation {
 public:
  Simulation(const Schedule& schedule, const std::vector<ActionCosts>& costs,
             const SimulateOptions& options)
      : schedule_(schedule),
        costs_(costs),
        options_(options),
        done_(costs.size() * static_cast<size_t>(schedule.microbatches)),
        owner_(costs.size(), -1) {}

  StatusOr<SimulationResult> Run() {
    TROUPE_RETURN_IF_ERROR(CheckOwners());
    TROUPE_RETURN_IF_ERROR(CheckPipelineLinks());
    const size_t ranks = schedule_.actions.size();
    std::vector<size_t> next(ranks, 0);
    std::vector<double> now(ranks, 0);
    std::vector<double> busy(ranks, 0);
    result_.peak_live_activations.assign(ranks, 0);
    if (options_.spans) result_.spans.resize(ranks);
    for (const auto& chunks : schedule_.chunks) {
      result_.peak_live_by_chunk.emplace_back(chunks.size(), 0);
      live_.emplace_back(chunks.size(), 0);
    }
    // A rank runs ahead until its next action lacks data; a round in which no rank moves is a
    // deadlock.
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t rank = 0; rank < ranks; ++rank) {
        const std::vector<Action>& actions = schedule_.actions[rank];
        while (next[rank] < actions.size()) {
          // One action, or the two of an indivisible pair.
          const size_t begin = next[rank];
          const bool pair = options_.indivisible_pairs && actions[begin].overlaps_next &&
                            begin + 1 < actions.size();
          const size_t end = begin + (pair ? 2 : 1);
          double ready = 0;
          double cost = 0;
          for (size_t i = begin; i < end; ++i) {
            TROUPE_RETURN_IF_ERROR(Check(actions[i], static_cast<int>(rank)));
            const double own = ReadyTime(actions[i]);
            ready = own < 0 || ready < 0 ? kNotYet : std::max(ready, own);
            cost += CostOf(actions[i]);
          }
          if (ready < 0) break;
          now[rank] = std::max(now[rank], ready) + cost;
          busy[rank] += cost;
          if (options_.spans)
            result_.spans[rank].resize(end, ActionSpan{now[rank] - cost, now[rank]});
          for (size_t i = begin; i < end; ++i) Finish(actions[i], rank, now[rank]);
          next[rank] = end;
          moved = true;
        }
      }
    }
    for (size_t rank = 0; rank < ranks; ++rank) {
      if (next[rank] < schedule_.actions[rank].size()) {
        return InvalidArgument("{}: rank {} waits forever before {}", schedule_.name, rank,
                               ToText(schedule_.actions[rank][next[rank]]));
      }
    }
    TROUPE_RETURN_IF_ERROR(CheckComplete());
    result_.makespan = *std::max_element(now.begin(), now.end());
    for (double time : busy) result_.idle.push_back(result_.makespan - time);
    result_.bubble_ratio = result_.makespan > 0
                               ? std::accumulate(result_.idle.begin(), result_.idle.end(), 0.0) /
                                     (static_cast<double>(ranks) * result_.makespan)
                               : 0;
    return result_;
  }

 private:
  Done& DoneOf(int chunk, int microbatch) {
    return done_[static_cast<size_t>(chunk) * static_cast<size_t>(schedule_.microbatches) +
                 static_cast<size_t>(microbatch)];
  }

  Status CheckOwners() {
    for (size_t rank = 0; rank < schedule_.chunks.size(); ++rank) {
      for (int chunk : schedule_.chunks[rank]) {
        if (chunk < 0 || static_cast<size_t>(chunk) >= owner_.size() || owner_[chunk] >= 0) {
          return InvalidArgument("{}: chunk {} of rank {} is unknown or owned twice",
                                 schedule_.name, chunk, rank);
        }
        owner_[chunk] = static_cast<int>(rank);
      }
    }
    for (size_t chunk = 0; chunk < owner_.size(); ++chunk) {
      if (owner_[chunk] < 0) {
        return InvalidArgument("{}: chunk {} has no owner", schedule_.name, chunk);
      }
    }
    return OkStatus();
  }

  // Microbatches pass each pipeline link in the order in which one chunk sends them and the other
  // receives them or posts the receives of their gradients, so all chunks must have the same order.
  Status CheckPipelineLinks() {
    const std::vector<int>* first = nullptr;
    std::vector<std::vector<int>> orders[2];
    for (auto& of_kind : orders) of_kind.resize(owner_.size());
    for (const auto& actions : schedule_.actions) {
      for (const Action& action : actions) {
        if (action.kind == ActionKind::kWeightGradient || action.chunk < 0 ||
            static_cast<size_t>(action.chunk) >= owner_.size()) {
          continue;
        }
        orders[action.kind == ActionKind::kForward ? 0 : 1][action.chunk].push_back(
            action.microbatch);
      }
    }
    for (const auto& of_kind : orders) {
      for (size_t chunk = 0; chunk < owner_.size(); ++chunk) {
        const std::vector<int>& order = of_kind[chunk];
        if (first == nullptr) first = &order;
        // A different number is reported later as a missing or doubled action.
        if (order.size() == first->size() && order != *first) {
          return InvalidArgument(
              "{}: chunk {} runs the {} of its microbatches in an order other than that of chunk "
              "0's forwards",
              schedule_.name, chunk, &of_kind == orders ? "forwards" : "backwards");
        }
      }
    }
    return OkStatus();
  }

  Status Check(const Action& action, int rank) {
    if (action.chunk < 0 || static_cast<size_t>(action.chunk) >= owner_.size() ||
        owner_[action.chunk] != rank || action.microbatch < 0 ||
        action.microbatch >= schedule_.microbatches) {
      return InvalidArgument("{}: {} does not belong on rank {}", schedule_.name, ToText(action),
                             rank);
    }
    const Done& done = DoneOf(action.chunk, action.microbatch);
    const bool again = (action.kind == ActionKind::kForward && done.forward >= 0) ||
                       (action.kind == ActionKind::kInputGradient && done.input_gradient >= 0) ||
                       (action.kind == ActionKind::kWeightGradient && done.weight_gradient >= 0) ||
                       (action.kind == ActionKind::kBackward &&
                        (done.input_gradient >= 0 || done.weight_gradient >= 0));
    if (again) return InvalidArgument("{}: {} appears twice", schedule_.name, ToText(action));
    const bool early = (action.kind == ActionKind::kWeightGradient && done.input_gradient < 0) ||
                       (action.kind != ActionKind::kForward && done.forward < 0);
    if (early) {
      return InvalidArgument("{}: {} runs before its dependency on the same rank", schedule_.name,
                             ToText(action));
    }
    return OkStatus();
  }

  // The time at which the inputs of `action` are available; negative: not yet known.
  double ReadyTime(const Action& action) {
    const int last_chunk = static_cast<int>(costs_.size()) - 1;
    if (action.kind == ActionKind::kForward) {
      return action.chunk == 0 ? 0 : DoneOf(action.chunk - 1, action.microbatch).forward;
    }
    if (action.kind == ActionKind::kWeightGradient) {
      return DoneOf(action.chunk, action.microbatch).input_gradient;
    }
    return action.chunk == last_chunk ? DoneOf(action.chunk, action.microbatch).forward
                                      : DoneOf(action.chunk + 1, action.microbatch).input_gradient;
  }

  double CostOf(const Action& action) const {
    const ActionCosts& costs = costs_[action.chunk];
    switch (action.kind) {
      case ActionKind::kForward:
        return costs.forward;
      case ActionKind::kInputGradient:
        return costs.input_gradient;
      case ActionKind::kWeightGradient:
        return costs.weight_gradient;
      case ActionKind::kBackward:
        return costs.input_gradient + costs.weight_gradient;
    }
    return 0;
  }

  void Finish(const Action& action, size_t rank, double time) {
    Done& done = DoneOf(action.chunk, action.microbatch);
    const auto& chunks = schedule_.chunks[rank];
    const size_t index =
        static_cast<size_t>(std::find(chunks.begin(), chunks.end(), action.chunk) - chunks.begin());
    std::vector<int>& live = live_[rank];
    switch (action.kind) {
      case ActionKind::kForward: {
        done.forward = time;
        ++live[index];
        int& peak = result_.peak_live_by_chunk[rank][index];
        peak = std::max(peak, live[index]);
        const int all = std::accumulate(live.begin(), live.end(), 0);
        int& peak_all = result_.peak_live_activations[rank];
        peak_all = std::max(peak_all, all);
        break;
      }
      case ActionKind::kInputGradient:
        done.input_gradient = time;
        break;
      case ActionKind::kBackward:
        // The input gradient is sent at the end of the whole action.
        done.input_gradient = time;
        [[fallthrough]];
      case ActionKind::kWeightGradient:
        done.weight_gradient = time;
        --live[index];
        break;
    }
  }

  Status CheckComplete() {
    for (size_t chunk = 0; chunk < costs_.size(); ++chunk) {
      for (int m = 0; m < schedule_.microbatches; ++m) {
        const Done& done = DoneOf(static_cast<int>(chunk), m);
        if (done.forward < 0 || done.weight_gradient < 0) {
          return InvalidArgument("{}: microbatch {} of chunk {} has no {}", schedule_.name, m,
                                 chunk, done.forward < 0 ? "forward" : "backward");
        }
      }
    }
    return OkStatus();
  }

  const Schedule& schedule_;
  const std::vector<ActionCosts>& costs_;
  const SimulateOptions options_;
  std::vector<Done> done_;
  std::vector<int> owner_;              // rank of each chunk
  std::vector<std::vector<int>> live_;  // by rank and its chunk
  SimulationResult result_;
};

}  // namespace

StatusOr<SimulationResult> Simulate(const Schedule& schedule, const std::vector<ActionCosts>& costs,
                                    const SimulateOptions& options) {
  return Simulation(schedule, costs, options).Run();
}

}  // namespace troupe
