#include "coordinator/history/receipt_tally.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "coordinator/history/receipt_conditions.h"
#include "coordinator/history/step_figures.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/operation_counts.h"

namespace troupe {
namespace {

// Moves the figures that belong to all plans: what ranks prepared, wrote and found.
void MoveCommonFigures(v1::ReceiptTally* from, v1::ReceiptTally* to) {
  to->set_steps_of_other_plans(from->steps_of_other_plans());
  to->set_programs(from->programs());
  to->set_build_seconds(from->build_seconds());
  to->set_load_seconds(from->load_seconds());
  to->set_epoch(from->epoch());
  to->set_epoch_build_seconds(from->epoch_build_seconds());
  to->set_epoch_load_seconds(from->epoch_load_seconds());
  to->set_first_epoch(from->first_epoch());
  if (from->has_tuning_cache_hits()) to->set_tuning_cache_hits(from->tuning_cache_hits());
  if (from->has_graph_recaptures()) to->set_graph_recaptures(from->graph_recaptures());
  to->set_epoch_compiler_seconds(from->epoch_compiler_seconds());
  to->clear_compiler();
  if (from->has_compiler()) to->mutable_compiler()->Swap(from->mutable_compiler());
  to->mutable_environments()->Swap(from->mutable_environments());
  to->mutable_checkpoint_writes()->Swap(from->mutable_checkpoint_writes());
}

void TallyCompilation(const v1::Compilation& compilation, v1::ReceiptTally* tally) {
  v1::Receipt::Compiler& compiler = *tally->mutable_compiler();
  compiler.set_compiled(compiler.compiled() + compilation.compiled());
  compiler.set_cache_hits(compiler.cache_hits() + compilation.cache_hits());
  for (const v1::OperationCount& fault : compilation.cache_faults())
    CountOperation(fault.operation(), fault.count(), compiler.mutable_cache_faults());
  tally->set_epoch_compiler_seconds(
      std::max(tally->epoch_compiler_seconds(), compilation.seconds()));
}

// Adds the programs that a rank's compiler made after the rank was ready.
void TallyRecompilations(const v1::StepReport& report, v1::ReceiptTally* tally) {
  if (report.recompilations() == 0) return;
  v1::Receipt::Compiler& compiler = *tally->mutable_compiler();
  compiler.set_recompilations(compiler.recompilations() + report.recompilations());
  for (const std::string& name : report.recompiled()) {
    if (compiler.recompiled_size() == kMostRecompiledNames) return;
    if (std::ranges::count(compiler.recompiled(), name) == 0) compiler.add_recompiled(name);
  }
}

// Adds what a rank reports about its preparation with its first steps.
void TallyPreparation(const v1::StepReport& report, v1::ReceiptTally* tally) {
  TallyRecompilations(report, tally);
  if (tally->first_epoch() == 0) tally->set_first_epoch(report.group_epoch());
  if (report.has_graph_captures()) {
    const bool again = report.group_epoch() > tally->first_epoch();
    tally->set_graph_recaptures(tally->graph_recaptures() + (again ? report.graph_captures() : 0));
  }
  if (report.fallbacks_size() == 0 || report.rank() >= tally->environments_size()) return;
  *tally->mutable_environments(report.rank())->mutable_fallbacks() = report.fallbacks();
}

}  // namespace

int64_t StepsOf(const v1::ReceiptTally& tally) {
  return tally.warm_up_steps() + tally.steps_apart() + tally.steady_steps();
}

void BeginPlan(const v1::Plan& plan, v1::ReceiptTally* tally) {
  v1::ReceiptTally next;
  std::vector<v1::ReceiptTally> former = {*tally};
  former.insert(former.end(), tally->others().begin(), tally->others().end());
  former[0].clear_others();
  former[0].clear_environments();
  former[0].clear_checkpoint_writes();
  former[0].clear_compiler();
  google::protobuf::RepeatedPtrField<v1::ReceiptTally> others;
  int64_t dropped = 0;
  for (v1::ReceiptTally& other : former) {
    if (other.plan_digest() == plan.digest()) {
      next = std::move(other);
    } else if (StepsOf(other) > 0 && others.size() < kMostOtherPlans) {
      *others.Add() = std::move(other);
    } else {
      dropped += StepsOf(other);
    }
  }
  MoveCommonFigures(tally, &next);
  next.set_steps_of_other_plans(next.steps_of_other_plans() + dropped);
  next.set_plan_digest(plan.digest());
  next.set_plan_model_flops(plan.model_flops_per_step());
  next.set_plan_attention_flops(plan.attention_flops_per_step());
  next.mutable_others()->Swap(&others);
  *tally = std::move(next);
}

void TallyReady(uint64_t epoch, int32_t rank, const v1::RankEnvironment& environment,
                v1::ReceiptTally* tally) {
  if (epoch != tally->epoch()) {
    tally->set_build_seconds(tally->build_seconds() + tally->epoch_build_seconds());
    tally->set_load_seconds(tally->load_seconds() + tally->epoch_load_seconds());
    if (tally->has_compiler()) {
      v1::Receipt::Compiler& compiler = *tally->mutable_compiler();
      compiler.set_seconds(compiler.seconds() + tally->epoch_compiler_seconds());
    }
    tally->set_epoch(epoch);
    tally->set_epoch_compiler_seconds(0);
    tally->set_epoch_build_seconds(0);
    tally->set_epoch_load_seconds(0);
    tally->clear_environments();
  }
  while (tally->environments_size() <= rank) tally->add_environments();
  v1::RankEnvironment& known = *tally->mutable_environments(rank);
  if (known.programs() > 0) return;  // resent
  known = environment;
  if (environment.has_tuning_cache_hits()) {
    tally->set_tuning_cache_hits(tally->tuning_cache_hits() + environment.tuning_cache_hits());
  }
  if (environment.has_compilation()) TallyCompilation(environment.compilation(), tally);
  tally->set_programs(tally->programs() + environment.programs());
  tally->set_epoch_build_seconds(
      std::max(tally->epoch_build_seconds(), environment.build_seconds()));
  tally->set_epoch_load_seconds(std::max(tally->epoch_load_seconds(), environment.load_seconds()));
}

void TallyStep(const v1::StepReport& report, double model_flops, double peak_flops, Job* job) {
  v1::ReceiptTally* const tally = &job->tally;
  const double seconds = report.step_seconds();
  if (!(seconds > 0) || !std::isfinite(seconds)) return;
  TallyPreparation(report, tally);
  const bool begins = job->plan.digest() != tally->plan_digest();
  if (begins) BeginPlan(job->plan, tally);
  const bool first_of_epoch = report.rank() == 0 && report.epoch_step() == 1;
  if (begins || first_of_epoch || report.fallbacks_size() > 0) {
    *tally->mutable_conditions() = ConditionsOf(*job);
  }
  const bool global = report.rank() == 0;
  if (report.epoch_step() <= kWarmUpSteps) {
    if (!global) return;
    tally->set_warm_up_steps(tally->warm_up_steps() + 1);
    tally->set_warm_up_seconds(tally->warm_up_seconds() + seconds);
    return;
  }
  if (report.disturbed()) {
    if (global) tally->set_steps_apart(tally->steps_apart() + 1);
    return;
  }
  tally->set_rank_steps(tally->rank_steps() + 1);
  tally->set_rank_seconds(tally->rank_seconds() + seconds);
  AddFigures(report.figures(), tally->mutable_figures());
  if (!global) return;
  tally->set_fastest_step_seconds(
      tally->steady_steps() == 0 ? seconds : std::min(tally->fastest_step_seconds(), seconds));
  tally->set_slowest_step_seconds(std::max(tally->slowest_step_seconds(), seconds));
  tally->set_steady_steps(tally->steady_steps() + 1);
  tally->set_steady_seconds(tally->steady_seconds() + seconds);
  tally->set_steady_tokens(tally->steady_tokens() + report.event().tokens());
  tally->set_steady_model_flops(tally->steady_model_flops() + model_flops);
  if (peak_flops > 0) {
    tally->set_steady_peak_flops(tally->steady_peak_flops() + peak_flops * seconds);
    tally->set_peak_steps(tally->peak_steps() + 1);
  }
}

void TallyWrite(const std::string& method, v1::ReceiptTally* tally) {
  CountOperation(method, 1, tally->mutable_checkpoint_writes());
}

}  // namespace troupe
