#include "worker/rank/step_report.h"

#include <algorithm>

#include "worker/rank/rank_environment.h"

namespace troupe {
namespace {

constexpr size_t kMostRecompiledNames = 8;  // in one report

}  // namespace

std::array<PurposeSeconds, kPurposes> WithDevice(
    std::array<PurposeSeconds, kPurposes> of_host,
    const std::vector<DeviceCollectiveStatistics>& of_device) {
  for (const DeviceCollectiveStatistics& entry : of_device) {
    of_host[static_cast<size_t>(entry.purpose)].total += entry.seconds;
  }
  return of_host;
}

std::array<PurposeSeconds, kPurposes> StepCommunication::Advance(
    const std::array<PurposeSeconds, kPurposes>& now) {
  std::array<PurposeSeconds, kPurposes> since;
  for (size_t p = 0; p < since.size(); ++p) {
    since[p] = {now[p].total - before_[p].total, now[p].exposed - before_[p].exposed};
  }
  before_ = now;
  return since;
}

v1::StepFigures StepReportMaker::FiguresOf(const StepResult& result,
                                           const StepConditions& conditions) {
  v1::StepFigures figures = result.figures;
  figures.set_core_wait_seconds(conditions.core_wait_seconds);
  if (result.step_seconds > 0) {
    const double waited = result.stalls ? result.stalls->receives : result.receive_wait_seconds;
    figures.set_bubble_ratio(waited / result.step_seconds);
  }
  for (int p = 0; p < kPurposes; ++p) {
    PurposeSeconds seconds = conditions.communication[static_cast<size_t>(p)];
    // The device computes while its host waits, so only the device's stalls count as exposed.
    if (result.stalls) seconds.exposed = result.stalls->by_purpose[static_cast<size_t>(p)];
    if (!(seconds.total > 0) && !(seconds.exposed > 0)) continue;
    v1::CommunicationSeconds* const communication = figures.add_communication();
    communication->set_purpose(std::string(Name(static_cast<Purpose>(p))));
    communication->set_exposed(seconds.exposed);
    communication->set_total(seconds.total);
  }
  return figures;
}

v1::StepReport StepReportMaker::Make(const StepResult& result,
                                     const StepConditions& conditions) const {
  v1::StepReport report;
  report.set_job(job_);
  report.set_group_epoch(group_epoch_);
  report.set_rank(rank_);
  report.set_step(result.step);
  report.set_step_seconds(result.step_seconds);
  report.set_writing_attempt(conditions.writing_attempt);
  report.set_epoch_step(conditions.epoch_step);
  report.set_disturbed(conditions.saving || conditions.writing_attempt != 0 ||
                       result.event.skipped() || result.event.has_validation_loss() ||
                       result.event.norms_size() > 0);
  *report.mutable_figures() = FiguresOf(result, conditions);
  for (const double choices : result.expert_load) report.add_expert_load(choices);
  if (rank_ == 0) {
    *report.mutable_event() = result.event;
    report.set_model_flops(flops_.all - flops_.attention * (1 - result.seen_pairs));
    report.set_routed_choices(result.routed);
    report.set_dropped_choices(result.dropped);
    report.set_checkpoint_attempt(conditions.checkpoint_attempt);
    report.set_nonfinite(result.nonfinite);
  }
  return report;
}

void PreparationReport::Add(const kernels::PreparationCounts& counts,
                            const std::vector<std::string>& of_program,
                            const std::vector<std::string>& of_links, v1::StepReport* report) {
  if (counts.graph_captures) {
    report->set_graph_captures(*counts.graph_captures - reported_captures_);
    reported_captures_ = *counts.graph_captures;
  }
  if (of_program.size() <= reported_fallbacks_) return;
  reported_fallbacks_ = of_program.size();
  std::vector<std::string> all = of_program;
  all.insert(all.end(), of_links.begin(), of_links.end());
  for (v1::OperationCount& count : CountFallbacks(all)) {
    *report->add_fallbacks() = std::move(count);
  }
}

void PreparationReport::AddPrograms(const kernels::Compilation& compilation,
                                    v1::StepReport* report) {
  const std::vector<std::string>& programs = compilation.programs;
  report->set_recompilations(static_cast<int64_t>(programs.size() - reported_programs_));
  const size_t shown = std::min(programs.size(), reported_programs_ + kMostRecompiledNames);
  for (size_t i = reported_programs_; i < shown; ++i) report->add_recompiled(programs[i]);
  reported_programs_ = programs.size();
}

v1::RankMetrics MakeRankMetrics(const std::vector<CollectiveStatistics>& statistics,
                                const std::vector<DeviceCollectiveStatistics>& of_device,
                                const std::vector<std::string>& fallbacks) {
  v1::RankMetrics metrics;
  for (const CollectiveStatistics& entry : statistics) {
    v1::CollectiveHistogram* histogram = metrics.add_collectives();
    histogram->set_operation(std::string(Name(entry.operation)));
    histogram->set_axis(entry.axis);
    histogram->set_purpose(std::string(Name(entry.purpose)));
    histogram->set_bytes(entry.bytes);
    histogram->set_seconds(entry.seconds);
    histogram->set_bus_bytes(entry.bus_bytes);
    histogram->set_scope(std::string(Name(entry.scope)));
    for (uint64_t count : entry.duration_counts) histogram->add_duration_counts(count);
  }
  for (const DeviceCollectiveStatistics& entry : of_device) {
    v1::DeviceCollectiveTotals* totals = metrics.add_device_collectives();
    totals->set_operation(std::string(Name(entry.operation)));
    totals->set_axis(entry.axis);
    totals->set_purpose(std::string(Name(entry.purpose)));
    totals->set_count(entry.count);
    totals->set_bytes(entry.bytes);
    totals->set_bus_bytes(entry.bus_bytes);
    totals->set_seconds(entry.seconds);
    totals->set_scope(std::string(Name(entry.scope)));
  }
  for (const std::string& line : fallbacks)
    ++(*metrics.mutable_kernel_fallbacks())[line.substr(0, line.find(' '))];
  return metrics;
}

}  // namespace troupe
