#include "worker/rank/step_report.h"

#include "worker/rank/rank_environment.h"

namespace troupe {

std::array<PurposeSeconds, kPurposes> WithDevice(
    std::array<PurposeSeconds, kPurposes> of_host,
    const std::vector<DeviceCollectiveStatistics>& of_device) {
  for (const DeviceCollectiveStatistics& entry : of_device) {
    of_host[static_cast<size_t>(entry.purpose)].total += entry.seconds;
  }
  return of_host;
}

std::array<PurposeSeconds, kPurposes> StepCommunication::Take(
    const std::array<PurposeSeconds, kPurposes>& now) {
  std::array<PurposeSeconds, kPurposes> since;
  for (size_t p = 0; p < since.size(); ++p) {
    since[p] = {now[p].total - before_[p].total, now[p].exposed - before_[p].exposed};
  }
  before_ = now;
  return since;
}

v1::StepReport StepReportMaker::Make(const StepResult& result,
                                     const StepConditions& conditions) const {
  v1::StepReport report;
  report.set_job(job_);
  report.set_group_epoch(group_epoch_);
  report.set_rank(rank_);
  report.set_step(result.step);
  report.set_step_seconds(result.step_seconds);
  report.set_data_wait_seconds(result.data_wait_seconds);
  report.set_host_waits(result.host_waits);
  report.set_graph_launches(result.graph_launches);
  report.set_bubble_seconds(result.stalls ? result.stalls->receives : result.receive_wait_seconds);
  report.set_writing_attempt(conditions.writing_attempt);
  report.set_epoch_step(conditions.epoch_step);
  report.set_disturbed(conditions.saving || conditions.writing_attempt != 0 || result.skipped ||
                       result.validation_loss.has_value() || !result.norms.empty());
  report.set_core_wait_seconds(conditions.core_wait_seconds);
  for (int p = 0; p < kPurposes; ++p) {
    PurposeSeconds seconds = conditions.communication[static_cast<size_t>(p)];
    // The device computes while its host waits, so only the device's stalls count as exposed.
    if (result.stalls) seconds.exposed = result.stalls->by_purpose[static_cast<size_t>(p)];
    if (!(seconds.total > 0) && !(seconds.exposed > 0)) continue;
    v1::StepCommunication* const communication = report.add_communication();
    communication->set_purpose(std::string(Name(static_cast<Purpose>(p))));
    communication->set_exposed_seconds(seconds.exposed);
    communication->set_total_seconds(seconds.total);
  }
  for (const double choices : result.expert_load) report.add_expert_load(choices);
  if (rank_ == 0) {
    report.set_loss(result.loss);
    report.set_grad_norm(result.grad_norm);
    report.set_learning_rate(result.learning_rate);
    report.set_tokens(result.tokens);
    report.set_model_flops(flops_.all - flops_.attention * (1 - result.seen_pairs));
    report.set_skipped(result.skipped);
    report.set_routed_choices(result.routed);
    report.set_dropped_choices(result.dropped);
    report.set_checkpoint_attempt(conditions.checkpoint_attempt);
    report.set_nonfinite(result.nonfinite);
    for (const BlockNorm& norm : result.norms) {
      v1::BlockNorm* const reported = report.add_norms();
      reported->set_block(norm.block);
      reported->set_gradient(norm.gradient);
      reported->set_parameter(norm.parameter);
    }
    report.set_has_validation(result.validation_loss.has_value());
    report.set_validation_loss(result.validation_loss.value_or(0));
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
  }
  for (const std::string& line : fallbacks)
    ++(*metrics.mutable_kernel_fallbacks())[line.substr(0, line.find(' '))];
  return metrics;
}

}  // namespace troupe
