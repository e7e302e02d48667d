#include "cli/output/checkpoint_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/printable.h"
#include "base/text/scaled.h"
#include "cli/output/relative_path.h"
#include "cli/output/table.h"
#include "report/text/duration_text.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

constexpr size_t kLeastPathColumns = 14;
constexpr size_t kLeastDigestColumns = 14;

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

Table EmptyTable(const std::string& path_title) {
  constexpr auto kLeft = Table::Align::kLeft, kRight = Table::Align::kRight;
  constexpr auto kShortened = Table::Narrow::kShortened;
  return Table({{"STEP", kRight},
                {"CHECKPOINT"},
                {"SIZE", kRight},
                {"AGE", kRight},
                {.title = "NOTES", .narrow = Table::Narrow::kBelow, .importance = 1},
                {path_title, kLeft, kShortened, kLeastPathColumns},
                {"DIGEST", kLeft, kShortened, kLeastDigestColumns, 2}});
}

}  // namespace

std::string CheckpointTableText(const std::vector<v1::CheckpointRecord>& checkpoints,
                                const CheckpointTableOptions& options) {
  const std::string& directory = options.style.directory;
  const bool details = options.has_paths_and_digests;
  // Scripts read whole paths.
  const bool has_names = !details || options.style.columns != kAnyColumns;
  const std::string parent = has_names ? CommonParent(checkpoints) : "";
  const bool all_committed = std::ranges::all_of(checkpoints, [](const auto& record) {
    return record.state() == v1::CHECKPOINT_STATE_COMMITTED;
  });
  Table table =
      EmptyTable(parent.empty() ? "PATH" : "IN " + PrintableLine(RelativePath(parent, directory)));
  for (const v1::CheckpointRecord& checkpoint : checkpoints) {
    const std::string& path = checkpoint.path();
    const std::string state = EnumText(*v1::CheckpointState_descriptor(), checkpoint.state());
    table.AddRow({{fmt::to_string(checkpoint.step())},
                  {details && all_committed ? "" : state, ColourOf(checkpoint.state())},
                  {Scaled(static_cast<double>(checkpoint.bytes()), "B")},
                  {AgeText(checkpoint.commit_wall_time_ns(), options.now_ns)},
                  {NotesText(checkpoint)},
                  {parent.empty() ? RelativePath(path, directory) : path.substr(parent.size())},
                  {details ? checkpoint.digest() : ""}});
    if (!checkpoint.reason().empty())
      table.AddLine(WithRelativePaths(checkpoint.reason(), directory));
    if (!checkpoint.doubted_by().empty()) {
      table.AddLine(fmt::format("doubted by {}: {}", checkpoint.doubted_by(),
                                WithRelativePaths(checkpoint.doubt(), directory)));
    }
  }
  return table.Text(options.style);
}

}  // namespace troupe
