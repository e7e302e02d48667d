#include "cli/output/describe_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/clock.h"
#include "base/text/printable.h"
#include "base/text/wrapped.h"
#include "cli/output/checkpoint_table.h"
#include "cli/output/relative_path.h"
#include "cli/output/state_line.h"
#include "cli/output/table.h"
#include "report/text/duration_text.h"
#include "report/text/json_text.h"
#include "report/text/status_text.h"

namespace troupe {
namespace {

constexpr size_t kLeastDescribedColumns = 14;  // least width of a shortened name or path

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

// Formats the datasets, with their shares where there are several.
std::string DataText(const v1::Plan& plan, const std::string& directory) {
  std::vector<std::string> sets;
  for (const v1::DataShare& data : plan.data()) {
    const std::string path = RelativePath(data.path(), directory);
    sets.push_back(plan.data_size() == 1 ? path
                                         : fmt::format("{} {:.1f}%", path, 100 * data.share()));
  }
  return fmt::format("{}", fmt::join(sets, ", "));
}

// Formats "2026-11-24T06:37:13Z, 12 min ago".
std::string TimeText(int64_t wall_ns, int64_t now_ns) {
  return fmt::format("{}, {} ago", UtcText(wall_ns / 1'000'000'000), AgeText(wall_ns, now_ns));
}

// The checkpoints of a job are sorted by step.
std::string LastCheckpointText(const v1::Job& job, const std::string& directory) {
  std::string text = "none";
  for (const auto& checkpoint : job.checkpoints()) {
    if (checkpoint.state() != v1::CHECKPOINT_STATE_COMMITTED) continue;
    text =
        fmt::format("step {}, {}", checkpoint.step(), RelativePath(checkpoint.path(), directory));
  }
  return text;
}

// Whether the text of `failure` has cause and message of `last` already. The failure of a job whose
// restarts are used up quotes the last one.
bool Quotes(const v1::Failure& failure, const v1::Failure& last) {
  const std::string text = FailureLine(failure);
  return text.find(last.cause()) != std::string::npos &&
         text.find(last.message()) != std::string::npos;
}

std::string Summary(const v1::Job& job, const DescribeOptions& options) {
  const size_t columns = options.style.columns;
  const std::string& directory = options.style.directory;
  std::string text = StateLine({.name = job.name(),
                                .state = StateText(job),
                                .colour = options.style.colours ? ColourOf(job) : Colour::kNone,
                                .step = job.step(),
                                .steps = job.steps()},
                               columns);
  const auto add = [&text, columns](const char* subject, const std::string& value) {
    text += WrappedBehind(fmt::format("{:<16} ", subject), PrintableLine(value), columns) + "\n";
  };
  const auto add_reason = [&add, &directory](const char* subject, const std::string& value) {
    add(subject, WithRelativePaths(value, directory));
  };
  if (job.create_wall_time_ns() != 0)
    add("created", TimeText(job.create_wall_time_ns(), options.now_ns));
  if (!job.creator().empty()) add("created by", job.creator());
  if (!job.moving().empty()) add_reason("moving", job.moving());
  if (!job.waiting_for().empty()) add_reason("waiting", job.waiting_for());
  if (!options.save_failure.empty()) add_reason("not saved", options.save_failure);
  if (job.has_failure()) add_reason("failure", FailureLine(job.failure()));
  if (job.has_layout()) {
    const std::string layout = LayoutText(job.layout());
    const std::string submitted = LayoutText(job.submitted_layout());
    add("layout", layout == submitted ? layout : layout + "; submitted with " + submitted);
  }
  if (job.plan().data_size() > 0) add("data", DataText(job.plan(), directory));
  if (options.last_step) add("speed", StepText(*options.last_step));
  add("last checkpoint", LastCheckpointText(job, directory));
  add("restarts", fmt::to_string(job.restarts()));
  if (job.moves() > 0) add("moves", fmt::to_string(job.moves()));
  if (job.has_last_failure() && !(job.has_failure() && Quotes(job.failure(), job.last_failure())))
    add_reason("last failure", FailureLine(job.last_failure()));
  if (!job.plan().digest().empty()) add("plan", job.plan().digest());
  return text;
}

std::string RanksText(const v1::Job& job, const TextStyle& style) {
  constexpr auto kLeft = Table::Align::kLeft, kRight = Table::Align::kRight;
  constexpr auto kBelow = Table::Narrow::kBelow;
  Table table({{"RANK", kRight},
               {"WORKER", kLeft, Table::Narrow::kShortened, kLeastDescribedColumns},
               {"DEVICE", kRight},
               {"PID", kRight},
               {.title = "PLACE", .narrow = kBelow, .importance = 2},
               {.title = "CORES", .narrow = kBelow, .importance = 1}});
  for (const v1::RankStatus& rank : job.ranks()) {
    table.AddRow({{fmt::to_string(rank.rank())},
                  {rank.worker()},
                  {fmt::to_string(rank.device())},
                  {rank.pid() == 0 ? "" : fmt::to_string(rank.pid())},
                  {CoordinatesText(job.layout(), rank.coordinates())},
                  {CoreRanges(rank.cores())}});
  }
  return table.Text(style);
}

}  // namespace

std::string DescribeText(const v1::Job& job, const DescribeOptions& options) {
  std::string text = Summary(job, options);
  if (job.ranks_size() > 0) text += "\n" + RanksText(job, options.style);
  std::vector<v1::CheckpointRecord> checkpoints;
  for (const v1::CheckpointRecord& checkpoint : job.checkpoints()) {
    if (checkpoint.state() == v1::CHECKPOINT_STATE_COMMITTED ||
        checkpoint.state() == v1::CHECKPOINT_STATE_QUARANTINED) {
      checkpoints.push_back(checkpoint);
    }
  }
  if (!checkpoints.empty()) {
    text +=
        "\n" + CheckpointTableText(checkpoints, {.now_ns = options.now_ns, .style = options.style});
  }
  return text;
}

}  // namespace troupe
