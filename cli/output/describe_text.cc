#include "cli/output/describe_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/text/printable.h"
#include "cli/output/json_text.h"

namespace troupe {
namespace {

// Formats a layout, "4 ranks, pipe 2 × tensor 2" or "1 rank".
std::string LayoutText(const v1::MeshDegrees& layout) {
  const Json degrees = MessageToJson(layout);
  int64_t ranks = 1;
  std::vector<std::string> axes;
  for (const auto& [axis, value] : degrees.items()) {
    const int64_t degree = value.get<int64_t>();
    if (degree <= 1) continue;
    ranks *= degree;
    axes.push_back(fmt::format("{} {}", axis, degree));
  }
  if (axes.empty()) return "1 rank";
  return fmt::format("{} ranks, {}", ranks, fmt::join(axes, " × "));
}

std::string StepText(const v1::StepEvent& step) {
  std::string text =
      fmt::format("{:.0f} tokens/s, loss {:.6f}", step.tokens_per_second(), step.loss());
  if (step.has_mfu()) text += fmt::format(", MFU {:.1f}%", 100 * step.mfu());
  return text + fmt::format(" at step {}", step.step());
}

// The checkpoints of a job are sorted by step.
std::string LastCheckpointText(const v1::Job& job) {
  std::string text = "none";
  for (const auto& checkpoint : job.checkpoints()) {
    if (checkpoint.state() != v1::CHECKPOINT_STATE_COMMITTED) continue;
    text = fmt::format("step {}, {}", checkpoint.step(), checkpoint.path());
  }
  return text;
}

std::string FailureText(const v1::Failure& failure) {
  std::string text = failure.cause();
  if (failure.rank() >= 0) text += fmt::format(" of rank {}", failure.rank());
  if (!failure.worker().empty()) text += " on " + failure.worker();
  return failure.message().empty() ? text : text + ": " + failure.message();
}

}  // namespace

std::string DescribeText(const v1::Job& job, const std::optional<v1::StepEvent>& last_step) {
  std::string text = fmt::format("{}: {}, step {} of {}\n", PrintableLine(job.name()),
                                 StateText(job), job.step(), job.steps());
  const auto add = [&text](const char* subject, const std::string& value) {
    text += fmt::format("{:<16} {}\n", subject, PrintableLine(value));
  };
  if (!job.creator().empty()) add("created by", job.creator());
  if (!job.moving().empty()) add("moving", job.moving());
  if (!job.waiting_for().empty()) add("waiting", job.waiting_for());
  if (job.has_failure()) add("failure", FailureText(job.failure()));
  if (job.has_layout()) {
    const std::string layout = LayoutText(job.layout());
    const std::string submitted = LayoutText(job.submitted_layout());
    add("layout", layout == submitted ? layout : layout + "; submitted with " + submitted);
  }
  if (last_step) add("speed", StepText(*last_step));
  add("last checkpoint", LastCheckpointText(job));
  add("restarts", fmt::to_string(job.restarts()));
  if (job.moves() > 0) add("moves", fmt::to_string(job.moves()));
  if (job.has_last_failure()) add("last failure", FailureText(job.last_failure()));
  return text;
}

}  // namespace troupe
