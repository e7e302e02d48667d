#include "cli/output/describe_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/text/printable.h"
#include "cli/output/cores_text.h"
#include "cli/output/duration_text.h"
#include "cli/output/json_text.h"
#include "cli/output/table.h"
#include "plan/text/scaled.h"

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

// Formats a rank's coordinates on the axes of more than one rank, "pipe 0, tensor 1".
std::string PlaceText(const v1::MeshDegrees& layout, const v1::MeshCoordinates& coordinates) {
  const Json degrees = MessageToJson(layout), places = MessageToJson(coordinates);
  std::vector<std::string> axes;
  for (const auto& [axis, value] : degrees.items()) {
    if (value.get<int64_t>() > 1)
      axes.push_back(fmt::format("{} {}", axis, places[axis].get<int64_t>()));
  }
  return fmt::format("{}", fmt::join(axes, ", "));
}

std::string StepText(const v1::StepEvent& step) {
  std::string text =
      fmt::format("{:.0f} tokens/s, loss {:.6f}", step.tokens_per_second(), step.loss());
  if (step.has_mfu()) text += fmt::format(", MFU {:.1f}%", 100 * step.mfu());
  return text + fmt::format(" at step {}", step.step());
}

// Formats the datasets, with their shares where there are several.
std::string DataText(const v1::Plan& plan) {
  std::vector<std::string> sets;
  for (const v1::DataShare& data : plan.data()) {
    sets.push_back(plan.data_size() == 1
                       ? data.path()
                       : fmt::format("{} {:.1f}%", data.path(), 100 * data.share()));
  }
  return fmt::format("{}", fmt::join(sets, ", "));
}

// Formats "2026-11-24T06:37:13Z, 12 min ago".
std::string TimeText(int64_t wall_ns, int64_t now_ns) {
  return fmt::format("{}, {} ago", UtcText(wall_ns / 1'000'000'000), AgeText(wall_ns, now_ns));
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
  if (failure.signal() != 0) text += fmt::format(", signal {}", failure.signal());
  if (failure.exit_code() != 0) text += fmt::format(", exit code {}", failure.exit_code());
  if (!failure.last_operation().empty()) text += ", in " + failure.last_operation();
  return failure.message().empty() ? text : text + ": " + failure.message();
}

// Whether the text of `failure` has cause and message of `last` already. The failure of a job whose
// restarts are used up quotes the last one.
bool Quotes(const v1::Failure& failure, const v1::Failure& last) {
  const std::string text = FailureText(failure);
  return text.find(last.cause()) != std::string::npos &&
         text.find(last.message()) != std::string::npos;
}

std::string Summary(const v1::Job& job, const DescribeOptions& options) {
  const Colour colour = options.colours ? ColourOf(job) : Colour::kNone;
  std::string text = fmt::format("{}: {}, step {} of {}\n", PrintableLine(job.name()),
                                 InColour(colour, StateText(job)), job.step(), job.steps());
  const auto add = [&text](const char* subject, const std::string& value) {
    text += fmt::format("{:<16} {}\n", subject, PrintableLine(value));
  };
  if (job.create_wall_time_ns() != 0)
    add("created", TimeText(job.create_wall_time_ns(), options.now_ns));
  if (!job.creator().empty()) add("created by", job.creator());
  if (!job.moving().empty()) add("moving", job.moving());
  if (!job.waiting_for().empty()) add("waiting", job.waiting_for());
  if (job.has_failure()) add("failure", FailureText(job.failure()));
  if (job.has_layout()) {
    const std::string layout = LayoutText(job.layout());
    const std::string submitted = LayoutText(job.submitted_layout());
    add("layout", layout == submitted ? layout : layout + "; submitted with " + submitted);
  }
  if (job.plan().data_size() > 0) add("data", DataText(job.plan()));
  if (options.last_step) add("speed", StepText(*options.last_step));
  add("last checkpoint", LastCheckpointText(job));
  add("restarts", fmt::to_string(job.restarts()));
  if (job.moves() > 0) add("moves", fmt::to_string(job.moves()));
  if (job.has_last_failure() && !(job.has_failure() && Quotes(job.failure(), job.last_failure())))
    add("last failure", FailureText(job.last_failure()));
  if (!job.plan().digest().empty()) add("plan", job.plan().digest());
  return text;
}

std::string RanksText(const v1::Job& job, bool colours) {
  constexpr auto kRight = Table::Align::kRight;
  Table table(
      {{"RANK", kRight}, {"WORKER"}, {"DEVICE", kRight}, {"PID", kRight}, {"PLACE"}, {"CORES"}});
  for (const v1::RankStatus& rank : job.ranks()) {
    table.AddRow({{fmt::to_string(rank.rank())},
                  {rank.worker()},
                  {fmt::to_string(rank.device())},
                  {rank.pid() == 0 ? "" : fmt::to_string(rank.pid())},
                  {PlaceText(job.layout(), rank.coordinates())},
                  {CoresText(rank.cores())}});
  }
  return table.Text(colours);
}

// Returns the directory of `path` with its slash.
std::string ParentOf(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

// Returns the directory of all the checkpoints, with its slash; empty if they are in several.
std::string CommonParent(const std::vector<v1::CheckpointRecord>& checkpoints) {
  const std::string parent = ParentOf(checkpoints.front().path());
  const bool is_common = std::ranges::all_of(
      checkpoints, [&](const auto& record) { return ParentOf(record.path()) == parent; });
  return is_common ? parent : "";
}

std::string NotesText(const v1::CheckpointRecord& checkpoint) {
  std::vector<std::string> notes;
  if (checkpoint.verified()) notes.emplace_back("verified");
  if (checkpoint.pinned()) notes.emplace_back("pinned");
  if (!checkpoint.doubted_by().empty()) notes.emplace_back("doubted");
  return fmt::format("{}", fmt::join(notes, ", "));
}

std::string CheckpointsText(const std::vector<v1::CheckpointRecord>& checkpoints,
                            const DescribeOptions& options) {
  constexpr auto kRight = Table::Align::kRight;
  const std::string parent = CommonParent(checkpoints);
  Table table({{"STEP", kRight},
               {"CHECKPOINT"},
               {"SIZE", kRight},
               {"AGE", kRight},
               {"NOTES"},
               {parent.empty() ? "PATH" : "IN " + PrintableLine(parent)}});
  for (const v1::CheckpointRecord& checkpoint : checkpoints) {
    table.AddRow({{fmt::to_string(checkpoint.step())},
                  {EnumText(*v1::CheckpointState_descriptor(), checkpoint.state()),
                   ColourOf(checkpoint.state())},
                  {Scaled(static_cast<double>(checkpoint.bytes()), "B")},
                  {AgeText(checkpoint.commit_wall_time_ns(), options.now_ns)},
                  {NotesText(checkpoint)},
                  {checkpoint.path().substr(parent.size())}});
    if (!checkpoint.reason().empty()) table.AddLine(checkpoint.reason());
    if (!checkpoint.doubted_by().empty())
      table.AddLine(fmt::format("doubted by {}: {}", checkpoint.doubted_by(), checkpoint.doubt()));
  }
  return table.Text(options.colours);
}

}  // namespace

std::string DescribeText(const v1::Job& job, const DescribeOptions& options) {
  std::string text = Summary(job, options);
  if (job.ranks_size() > 0) text += "\n" + RanksText(job, options.colours);
  std::vector<v1::CheckpointRecord> checkpoints;
  for (const v1::CheckpointRecord& checkpoint : job.checkpoints()) {
    if (checkpoint.state() == v1::CHECKPOINT_STATE_COMMITTED ||
        checkpoint.state() == v1::CHECKPOINT_STATE_QUARANTINED) {
      checkpoints.push_back(checkpoint);
    }
  }
  if (!checkpoints.empty()) text += "\n" + CheckpointsText(checkpoints, options);
  return text;
}

}  // namespace troupe
