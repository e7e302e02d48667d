#include "coordinator/history/receipt.h"

#include <set>
#include <string>

#include "base/text/count_text.h"
#include "coordinator/history/receipt_conditions.h"
#include "coordinator/history/receipt_tally.h"
#include "coordinator/history/step_figures.h"
#include "coordinator/state/job_state.h"

namespace troupe {
namespace {

// With fewer steps a mean is not meaningful.
constexpr int64_t kFewSteps = 10;
// Share of the step spent waiting for cores above which other work must have used them.
constexpr double kMuchCoreWait = 0.02;
constexpr double kUnevenSteps = 1.5;

constexpr char kMfuConvention[] =
    "troupe-1: FLOPs of the matmuls of forward and backward (6 per weight and token), with half "
    "the FLOPs for causal attention; counts real tokens, attended pairs and active parameters, but "
    "neither padded vocabulary nor recomputation; divided by the devices' peak for the compute "
    "dtype";

std::string Percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

void FillSteady(const v1::ReceiptTally& tally, v1::Receipt* receipt) {
  v1::Receipt::Steady* const steady = receipt->mutable_steady();
  steady->set_steps(tally.steady_steps());
  steady->set_seconds(tally.steady_seconds());
  steady->set_mfu_convention(kMfuConvention);
  steady->set_fastest_step_seconds(tally.fastest_step_seconds());
  steady->set_slowest_step_seconds(tally.slowest_step_seconds());
  if (tally.steady_seconds() > 0) {
    steady->set_tokens_per_second(static_cast<double>(tally.steady_tokens()) /
                                  tally.steady_seconds());
  }
  if (tally.peak_steps() == tally.steady_steps() && tally.steady_peak_flops() > 0) {
    steady->set_mfu(tally.steady_model_flops() / tally.steady_peak_flops());
  }
  const double attention = tally.plan_attention_flops();
  if (tally.steady_steps() > 0 && attention > 0) {
    const double flops = tally.steady_model_flops() / static_cast<double>(tally.steady_steps());
    receipt->set_seen_pairs(1 - (tally.plan_model_flops() - flops) / attention);
  }
  if (tally.rank_steps() == 0) return;
  steady->mutable_mean()->MergeFrom(MeanFigures(tally.figures(), tally.rank_steps()));
}

// Adds reasons why the figures themselves may mislead.
void AddSuspectFigures(const v1::ReceiptTally& tally, v1::Receipt* receipt) {
  const auto add = [&](std::string reason) { receipt->add_suspect(std::move(reason)); };
  if (tally.steady_steps() < kFewSteps) {
    add(fmt::format("only {} steady steps, fewer than {}", tally.steady_steps(), kFewSteps));
  }
  if (receipt->steady().mfu() > 1) {
    add(fmt::format("an MFU of {} cannot be: the devices' peak was measured or stated too low",
                    Percent(receipt->steady().mfu())));
  }
  const double step_seconds =
      tally.rank_steps() > 0 ? tally.rank_seconds() / static_cast<double>(tally.rank_steps()) : 0;
  const double core_wait = receipt->steady().mean().core_wait_seconds();
  if (step_seconds > 0 && core_wait > kMuchCoreWait * step_seconds) {
    add(fmt::format("step threads waited {} of the time for a core that other work used",
                    Percent(core_wait / step_seconds)));
  }
  if (tally.fastest_step_seconds() > 0 &&
      tally.slowest_step_seconds() > kUnevenSteps * tally.fastest_step_seconds()) {
    add(fmt::format("steps are uneven: the slowest steady step took {:.2f} times the fastest",
                    tally.slowest_step_seconds() / tally.fastest_step_seconds()));
  }
}

// Adds the measurements of one plan to the conditions that `receipt` has.
void AddFigures(const v1::ReceiptTally& tally, v1::Receipt* receipt) {
  receipt->mutable_warm_up()->set_steps(tally.warm_up_steps());
  receipt->mutable_warm_up()->set_seconds(tally.warm_up_seconds());
  receipt->set_steps_apart(tally.steps_apart());
  FillSteady(tally, receipt);
  if (receipt->target_missed().empty() && tally.steady_steps() == 0) {
    receipt->set_target_missed("there are no steady steps");
  }
  receipt->set_target_reached(receipt->target_missed().empty());
  AddSuspectFigures(tally, receipt);
}

void FillCompile(const v1::ReceiptTally& tally, v1::Receipt* receipt) {
  if (tally.programs() == 0) return;
  v1::Receipt::Compile* const compile = receipt->mutable_compile();
  compile->set_count(tally.programs());
  compile->set_seconds(tally.build_seconds() + tally.epoch_build_seconds());
  compile->set_load_seconds(tally.load_seconds() + tally.epoch_load_seconds());
  if (tally.has_tuning_cache_hits()) compile->set_cache_hits(tally.tuning_cache_hits());
  if (tally.has_graph_recaptures()) compile->set_recaptures(tally.graph_recaptures());
  if (!tally.has_compiler()) return;
  v1::Receipt::Compiler& compiler = *compile->mutable_compiler();
  compiler = tally.compiler();
  compiler.set_seconds(compiler.seconds() + tally.epoch_compiler_seconds());
  std::set<std::string> plugins;
  for (const v1::RankEnvironment& rank : tally.environments()) {
    if (rank.has_compilation()) plugins.insert(rank.compilation().plugin());
  }
  for (const std::string& plugin : plugins) compiler.add_plugins(plugin);
  if (compiler.recompilations() == 0) return;
  receipt->add_suspect(
      fmt::format("{} programs were compiled after the warm-up: {}{}", compiler.recompilations(),
                  fmt::join(compiler.recompiled(), ", "),
                  compiler.recompiled_size() == kMostRecompiledNames ? ", …" : ""));
}

void AddOtherPlans(const v1::ReceiptTally& tally, v1::Receipt* receipt) {
  int64_t steps = tally.steps_of_other_plans();
  for (const v1::ReceiptTally& other : tally.others()) {
    v1::Receipt* const measured = receipt->add_other_plans();
    *measured = other.conditions();
    measured->set_plan_digest(other.plan_digest());
    AddFigures(other, measured);
    steps += StepsOf(other);
  }
  if (steps == 0) return;
  receipt->add_suspect(fmt::format("{} excluded from the figures",
                                   CountText(steps, "step ran under another plan and is",
                                             "steps ran under another plan and are")));
}

}  // namespace

v1::Receipt MakeReceipt(const Job& job) {
  v1::ReceiptTally tally = job.tally;
  // The newest plan has had no step yet: the figures so far belong to another plan.
  if (tally.plan_digest() != job.plan.digest()) BeginPlan(job.plan, &tally);
  v1::Receipt receipt = ConditionsOf(job);
  receipt.set_state(StateName(ShownState(job)));
  AddFigures(tally, &receipt);
  FillCompile(tally, &receipt);
  *receipt.mutable_checkpoint_writes() = tally.checkpoint_writes();
  AddOtherPlans(tally, &receipt);
  return receipt;
}

}  // namespace troupe
