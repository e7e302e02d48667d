#include "plan/cost/step_time.h"

#include <algorithm>

#include "plan/layout/mesh.h"
#include "plan/validate/stage_inputs.h"

namespace troupe {
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

StatusOr<std::vector<StageTime>> TimesOfStages(StageMemo& stages, const v1::Plan& plan,
                                               const Schedule& schedule) {
  std::vector<StageTime> times;
  for (int pipe_rank = 0; pipe_rank < plan.mesh().pipe(); ++pipe_rank) {
    const auto& actions = schedule.actions[static_cast<size_t>(pipe_rank)];
    const StageRun run = {pipe_rank, schedule.microbatches,
                          CountLiveMicrobatches(actions).split_backward};
    TROUPE_ASSIGN_OR_RETURN(const StageTime* const time, stages.TimeOf(plan, run));
    times.push_back(*time);
  }
  return times;
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

StatusOr<StepTime> StepTimeOf(const v1::Plan& plan, const Schedule& schedule, double peak,
                              const std::vector<StageTime>& stages) {
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
  step.mfu = plan.model_flops_per_step() / (step.seconds * Mesh(plan.mesh()).ranks() * peak);
  return step;
}

StatusOr<StepTime> EstimateStepTime(StageMemo& stages, const v1::Plan& plan) {
  TROUPE_ASSIGN_OR_RETURN(const double peak, stages.peak());
  TROUPE_ASSIGN_OR_RETURN(const Schedule schedule, ScheduleOf(plan));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<StageTime> times,
                          TimesOfStages(stages, plan, schedule));
  return StepTimeOf(plan, schedule, peak, times);
}

StatusOr<StepTime> EstimateStepTime(const DecodedJob& job, const v1::Plan& plan,
                                    const v1::DeviceProfile& profile) {
  StageMemo stages(job, profile);
  return EstimateStepTime(stages, plan);
}

}  // namespace troupe
