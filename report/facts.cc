#include "report/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/text/count_text.h"
#include "base/text/scaled.h"
#include "plan/job/message_json.h"
#include "plan/text/precision_words.h"
#include "report/text/duration_text.h"
#include "report/text/json_text.h"
#include "report/text/short_pattern.h"

namespace troupe {
namespace {

// Formats a number with three digits and a decimal prefix: "3.08 M".
std::string Amount(double value) {
  std::string text = Scaled(value, "");
  if (text.ends_with(' ')) text.pop_back();
  return text;
}

std::string Amount(int64_t value) { return Amount(static_cast<double>(value)); }

// Returns the time of the job's end, or of its last event or step if it has not ended; 0 if it has
// neither.
int64_t LastTime(const JobReport& report) {
  int64_t end = 0;
  if (IsEndState(report.job.state())) {
    // Later events, such as those of its checkpoints, have the same state.
    for (auto event = report.events.rbegin(); event != report.events.rend(); ++event) {
      if (!IsEndState(event->state())) break;
      end = event->wall_time_ns();
    }
  }
  if (end > 0) return end;
  if (report.now_ns > 0 && !IsEndState(report.job.state())) return report.now_ns;
  for (const v1::JobEvent& event : report.events) end = std::max(end, event.wall_time_ns());
  for (const v1::StepEvent& step : report.steps) end = std::max(end, step.wall_time_ns());
  return end;
}

// The tokens of all steps, with their number if they are not all from the first one on.
std::string TrainedText(const JobReport& report) {
  const std::vector<v1::StepEvent>& steps = report.steps;
  int64_t tokens = 0;
  for (const v1::StepEvent& step : steps) tokens += step.tokens();
  tokens = report.trained_tokens.value_or(tokens);
  const int64_t count = report.all_steps.value_or(static_cast<int64_t>(steps.size()));
  const bool is_whole = steps.front().step() == 1 && steps.back().step() == count;
  return is_whole ? Amount(tokens)
                  : fmt::format("{} in {}", Amount(tokens), CountText(count, "step"));
}

void AddFactsOfSteps(const JobReport& report, TextRows* facts) {
  const std::vector<v1::StepEvent>& steps = report.steps;
  if (steps.empty()) return;
  const v1::StepEvent& last = steps.back();
  facts->emplace_back("loss", HasNoLoss(last) ? "none, without a target" : Figure(last.loss()));
  const auto validated = std::find_if(steps.rbegin(), steps.rend(), [](const v1::StepEvent& step) {
    return step.has_validation_loss();
  });
  if (validated != steps.rend()) {
    facts->emplace_back(
        "validation loss",
        fmt::format("{} at step {}", Figure(validated->validation_loss()), validated->step()));
  }
  facts->emplace_back("tokens trained", TrainedText(report));
}

// The blocks of the whole model, "(AD)x32".
std::string PatternOf(const v1::Plan& plan) {
  std::string blocks;
  for (const v1::ChunkPlan& chunk : plan.chunks()) blocks += chunk.blocks();
  return ShortPattern(blocks);
}

// The kind of the planned devices, with their model if it is known.
std::string DeviceText(const v1::JobSpec& spec, const v1::Plan& plan) {
  const std::string& kind = plan.has_device() ? plan.device().kind() : spec.devices();
  const std::string& model = plan.device().model();
  return model.empty() ? kind : fmt::format("{} ({})", model, kind);
}

// "1.2 B", or "1.2 B, 3.4 M trained".
std::string ParametersText(const v1::Plan& plan) {
  const std::string all = Amount(plan.parameters());
  if (!plan.has_trained_parameters()) return all;
  return fmt::format("{}, {} trained", all, Amount(plan.trained_parameters()));
}

}  // namespace

TextRows FactsOf(const JobReport& report) {
  const v1::Job& job = report.job;
  TextRows facts = {{"state", EnumText(*v1::JobState_descriptor(), job.state())},
                    {"step", fmt::format("{} of {}", job.step(), job.steps())}};
  if (const int64_t last = LastTime(report); job.create_wall_time_ns() > 0 && last > 0) {
    facts.emplace_back("duration",
                       DurationText(static_cast<double>(last - job.create_wall_time_ns()) * 1e-9));
  }
  AddFactsOfSteps(report, &facts);
  if (report.receipt && report.receipt->steady().has_tokens_per_second()) {
    const v1::Receipt::Steady& steady = report.receipt->steady();
    facts.emplace_back("tokens/s, steady", Amount(steady.tokens_per_second()));
    if (steady.has_mfu()) {
      facts.emplace_back("MFU, steady", fmt::format("{:.1f}%", 100 * steady.mfu()));
    }
  }
  facts.emplace_back("parameters", ParametersText(job.plan()));
  facts.emplace_back("ranks", fmt::to_string(job.plan().ranks_size()));
  facts.emplace_back("restarts", fmt::to_string(job.restarts()));
  return facts;
}

TextRows FactsOf(const v1::JobSpec& spec, const v1::Plan& plan, const StepTime* time) {
  const v1::TrainingSpec& training = spec.training();
  TextRows facts = {{"model", PatternOf(plan)},
                    {"parameters", ParametersText(plan)},
                    {"ranks", fmt::to_string(plan.ranks_size())},
                    {"device", DeviceText(spec, plan)}};
  if (const std::string& profile = plan.device_profile().name(); !profile.empty()) {
    facts.emplace_back("device profile", profile);
  }
  facts.emplace_back("global batch", CountText(training.global_batch_size(), "sample"));
  facts.emplace_back("micro batch", CountText(training.micro_batch_size(), "sample"));
  facts.emplace_back("sequence length", CountText(training.sequence_length(), "token"));
  facts.emplace_back("precision", IntendedPrecision(spec));
  facts.emplace_back("per step", Scaled(plan.model_flops_per_step(), "FLOP"));
  facts.emplace_back("schedule", plan.schedule().name());
  facts.emplace_back("bubble, equal costs",
                     fmt::format("{:.1f}%", 100 * plan.schedule().bubble_ratio()));
  if (time != nullptr) {
    facts.emplace_back("step, estimated", fmt::format("{:.4g} s", time->seconds));
    facts.emplace_back("MFU, estimated", fmt::format("{:.1f}%", 100 * time->mfu));
    facts.emplace_back("bubble, estimated", fmt::format("{:.1f}%", 100 * time->bubble_ratio));
  }
  return facts;
}

}  // namespace troupe
