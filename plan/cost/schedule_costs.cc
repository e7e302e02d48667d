#include "plan/cost/schedule_costs.h"

#include <algorithm>
#include <vector>

#include "plan/cost/cut_model.h"
#include "plan/cost/estimate.h"
#include "plan/cost/overlapped_pairs.h"
#include "plan/cost/step_time.h"

namespace troupe {

StatusOr<ScheduleCosts> FlopsOfSchedule(const DecodedJob& job, const Schedule& schedule) {
  const model::ModelConfig& model = job.model;
  int chunks = 0;
  for (const auto& of_rank : schedule.chunks) chunks += static_cast<int>(of_rank.size());
  TROUPE_ASSIGN_OR_RETURN(const Partition partition, CutModel(job, chunks));
  const double samples = static_cast<double>(job.batch.micro_batch_size);
  const double tokens = static_cast<double>(job.batch.sequence_length);
  ScheduleCosts costs;
  costs.indivisible_pairs = InterleavesPairs(schedule, job.mesh.ToProto());
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const auto index = static_cast<size_t>(chunk);
    const bool is_last = chunk + 1 == chunks;
    ActionCosts sum = {0, 0, 0};
    const auto add = [&](int block, const PassFlops& flops) {
      sum.forward += flops.forward;
      const bool trains = job.trained.Trains(block);
      if (trains || job.trained.TrainsBefore(block)) sum.input_gradient += flops.input_gradient;
      if (trains) sum.weight_gradient += flops.weight_gradient;
    };
    const int end = is_last ? model.num_blocks() : partition.first_block[index + 1];
    for (int block = partition.first_block[index]; block < end; ++block) {
      const PassFlops flops =
          BlockPassFlops(model, model.blocks[static_cast<size_t>(block)], samples, tokens);
      add(block, flops);
      // A recomputed block runs its forward again when its input gradient begins.
      if (job.recomputes_all) sum.input_gradient += flops.forward;
    }
    if (is_last) add(model.num_blocks(), HeadPassFlops(model, samples, tokens));
    costs.chunks.push_back(sum);
  }
  return costs;
}

StatusOr<ScheduleCosts> SecondsOfSchedule(const v1::Plan& plan, const Schedule& schedule,
                                          StageMemo& stages) {
  v1::Plan cut = plan;
  cut.mutable_schedule()->set_interleaves_pairs(InterleavesPairs(schedule, plan.mesh()));
  TROUPE_RETURN_IF_ERROR(AddChunks(stages.job(), schedule, &cut));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<StageTime> times, TimesOfStages(stages, cut, schedule));
  ScheduleCosts costs;
  costs.chunks = CostsByChunk(cut, times);
  costs.indivisible_pairs = cut.schedule().interleaves_pairs();
  for (const StageTime& stage : times) costs.once = std::max(costs.once, stage.outside_schedule);
  return costs;
}

std::string CostsLine(const ScheduleCosts& costs, const v1::DeviceProfile* profile) {
  const auto text = [&](size_t chunk) {
    const ActionCosts& of = costs.chunks[chunk];
    return fmt::format("{:.3g}, {:.3g}, {:.3g}", of.forward, of.input_gradient, of.weight_gradient);
  };
  const std::string unit = profile != nullptr
                               ? fmt::format("seconds of device profile {}", profile->name())
                               : "model FLOPs, because no device profile is given";
  const size_t last = costs.chunks.size() - 1;
  return fmt::format("costs of F, I, W in {}: first chunk {}; middle chunk {}; last chunk {}", unit,
                     text(0), text(last / 2), text(last));
}

}  // namespace troupe
