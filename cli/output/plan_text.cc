#include "cli/output/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/display_width.h"
#include "base/text/printable.h"
#include "base/text/scaled.h"
#include "base/text/wrapped.h"
#include "cli/output/relative_path.h"
#include "cli/output/table.h"
#include "plan/cost/overlapped_pairs.h"
#include "plan/validate/read_channels.h"
#include "report/text/short_pattern.h"
#include "report/text/status_text.h"

namespace troupe {
namespace {

constexpr size_t kLineColumns = 80;
// Columns of a chunk's blocks, with which its row fits: without and with the number of the chunk.
constexpr size_t kBlocksColumns = 32;
constexpr size_t kBlocksColumnsOfChunk = 25;
constexpr int kMostStagesOfMemory = 6;    // columns of one table
constexpr int kMostStagesOfSchedule = 8;  // unless the text is verbose

constexpr auto kRight = Table::Align::kRight;

std::string Bytes(int64_t bytes) { return Scaled(static_cast<double>(bytes), "B"); }

// A paragraph of the page's outermost level.
std::string Outer(const std::string& text) { return Wrapped(text, kLineColumns, "  ") + "\n"; }

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// A paragraph of a section. Scripts look for the words "has no effect": no line ends within them.
std::string Inner(const std::string& text) {
  constexpr std::string_view kWords = "has no effect", kOneWord = "has\u00a0no\u00a0effect";
  const std::string lines = Wrapped(Replaced(text, kWords, kOneWord), kLineColumns - 2, "    ");
  return "  " + Replaced(lines, kOneWord, kWords) + "\n";
}

template <typename Texts>
std::string Section(const std::string& title, const Texts& paragraphs) {
  if (paragraphs.empty()) return "";
  std::string text = "\n" + title + ":\n";
  for (const auto& paragraph : paragraphs) text += Inner(paragraph);
  return text;
}

std::string Indented(const Table& table) {
  std::istringstream lines(table.Text({}));
  std::string text;
  for (std::string line; std::getline(lines, line);) text += "  " + line + "\n";
  return text;
}

// The axes of a mesh, with the degree or the coordinate that `grid` has.
template <typename Grid>
std::vector<std::pair<const char*, int>> AxesOf(const Grid& grid) {
  return {{"pipe", grid.pipe()},
          {"data_replicate", grid.data_replicate()},
          {"data_shard", grid.data_shard()},
          {"context", grid.context()},
          {"expert", grid.expert()},
          {"tensor", grid.tensor()}};
}

std::string MeshText(const v1::Plan& plan) {
  std::string degrees;
  for (const auto& [axis, degree] : AxesOf(plan.mesh())) {
    if (degree > 1)
      degrees += fmt::format("{}{} {}", degrees.empty() ? " = " : " × ", axis, degree);
  }
  const int ranks = plan.ranks_size();
  return Outer(fmt::format("mesh: {} rank{}{}", ranks, ranks == 1 ? "" : "s", degrees));
}

std::string FiguresText(const v1::Plan& plan, const PlanTextOptions& options) {
  std::string text = MeshText(plan);
  const std::string trained =
      plan.has_trained_parameters()
          ? fmt::format(" ({} trained)", Scaled(static_cast<double>(plan.trained_parameters()), ""))
          : "";
  text += Outer(fmt::format("model: {} parameters{}, {} per step",
                            Scaled(static_cast<double>(plan.parameters()), ""), trained,
                            Scaled(plan.model_flops_per_step(), "FLOP")));
  if (const StepTime* const time = options.time) {
    text += Outer(fmt::format("estimate: {:.4g} s per step, MFU {:.1f}%, bubble {:.1f}%",
                              time->seconds, 100 * time->mfu, 100 * time->bubble_ratio));
    if (const std::string& profile = plan.device_profile().name(); !profile.empty())
      text += Inner(fmt::format("the device profile is {}", PrintableLine(profile)));
    text += Inner(fmt::format("the busiest rank computes {:.4g} s and communicates {:.4g} s",
                              time->compute_seconds, time->communication_seconds));
  }
  if (plan.recomputed_flops_per_step() > 0) {
    text += Outer(fmt::format("activation recomputation: {} more per step",
                              Scaled(plan.recomputed_flops_per_step(), "FLOP")));
  }
  for (const auto& entry : plan.data()) {
    text += Outer(fmt::format("data: {:.4g}% of the samples from {}", 100 * entry.share(),
                              RelativePath(entry.path(), options.working_directory)));
  }
  if (options.verbose && plan.has_samples()) text += Outer("samples: " + ToText(plan.samples()));
  return text;
}

std::string BlocksText(const v1::ChunkPlan& chunk, size_t columns) {
  std::string text = ShortPattern(chunk.blocks());
  if (chunk.has_embedding()) text = "embedding + " + text;
  if (chunk.has_head()) text += " + head";
  if (DisplayColumns(text) <= columns) return text;
  return std::string(FirstDisplayColumns(text, columns - 1)) + "…";
}

std::string StagesText(const v1::Plan& plan, bool verbose) {
  Table table({{"stage", kRight},
               {"chunk", kRight},
               {"from", kRight},
               {"blocks"},
               {"parameters", kRight},
               {"forward", kRight},
               {"memory", kRight}});
  const bool names_chunks = plan.chunks_size() > plan.mesh().pipe();
  size_t columns = names_chunks ? kBlocksColumnsOfChunk : kBlocksColumns;
  if (verbose) columns = std::numeric_limits<size_t>::max();
  for (const auto& chunk : plan.chunks()) {
    const int stage = chunk.pipe_rank();
    table.AddRow({{fmt::to_string(stage)},
                  {names_chunks ? fmt::to_string(chunk.chunk()) : ""},
                  {fmt::to_string(chunk.first_block())},
                  {BlocksText(chunk, columns)},
                  {Scaled(static_cast<double>(chunk.parameters()), "")},
                  {Scaled(chunk.forward_flops(), "FLOP")},
                  {stage < plan.memory_size() ? Bytes(plan.memory(stage).total_bytes()) : ""}});
  }
  return "\nstages:\n" + Indented(table) +
         Inner(fmt::format("imbalance: heaviest / mean = {:.3f}", plan.imbalance()));
}

// Whether the rank's device has memory of its own: no other has a reserve.
bool HasOwnMemory(const v1::RankMemory& memory) { return memory.reserve_bytes() > 0; }

// A part of a rank's memory; 0 where the rank has none.
struct MemoryPart {
  const char* name;
  int64_t (*bytes)(const v1::RankMemory& memory);
};

constexpr MemoryPart kMemoryParts[] = {
    {"parameters",
     [](const v1::RankMemory& memory) -> int64_t { return memory.parameter_bytes(); }},
    {"compute copies",
     [](const v1::RankMemory& memory) -> int64_t { return memory.compute_copy_bytes(); }},
    {"gradients", [](const v1::RankMemory& memory) -> int64_t { return memory.gradient_bytes(); }},
    {"optimizer", [](const v1::RankMemory& memory) -> int64_t { return memory.optimizer_bytes(); }},
    {"saved activations",
     [](const v1::RankMemory& memory) -> int64_t { return memory.saved_bytes(); }},
    {"temporary", [](const v1::RankMemory& memory) -> int64_t { return memory.temporary_bytes(); }},
    {"snapshot",
     [](const v1::RankMemory& memory) -> int64_t {
       return HasOwnMemory(memory) ? 0 : memory.snapshot_bytes();
     }},
    {"scratch", [](const v1::RankMemory& memory) -> int64_t { return memory.scratch_bytes(); }},
    {"reserve", [](const v1::RankMemory& memory) -> int64_t { return memory.reserve_bytes(); }},
    {"total", [](const v1::RankMemory& memory) -> int64_t { return memory.total_bytes(); }},
    {"by the compiler",
     [](const v1::RankMemory& memory) -> int64_t { return memory.compiled_bytes(); }},
    {"pinned on host", [](const v1::RankMemory& memory) -> int64_t { return memory.host_bytes(); }},
};

// Parts that no stage has are left out.
std::string MemoryTable(const v1::Plan& plan, const std::vector<int>& stages) {
  std::vector<Table::Column> columns = {{""}};
  for (const int stage : stages) columns.push_back({fmt::format("stage {}", stage), kRight});
  Table table(std::move(columns));
  for (const MemoryPart& part : kMemoryParts) {
    std::vector<TableCell> row = {{part.name}};
    bool any = false;
    for (const int stage : stages) {
      const int64_t bytes = part.bytes(plan.memory(stage));
      any = any || bytes > 0;
      row.push_back({Bytes(bytes)});
    }
    if (any) table.AddRow(std::move(row));
  }
  return Indented(table);
}

// The stages whose ranks need the most memory, at most `count`, ascending.
std::vector<int> FullestStages(const v1::Plan& plan, int count) {
  std::vector<int> stages;
  for (int stage = 0; stage < plan.memory_size(); ++stage) stages.push_back(stage);
  std::ranges::stable_sort(stages, std::ranges::greater{},
                           [&plan](int stage) { return plan.memory(stage).total_bytes(); });
  stages.resize(std::min(stages.size(), static_cast<size_t>(count)));
  std::ranges::sort(stages);
  return stages;
}

// The titled tables of all stages, or of those with the most memory.
std::string MemoryTables(const v1::Plan& plan, bool verbose) {
  const v1::RankMemory& first = plan.memory(0);
  std::string title = "\nmemory per rank";
  if (!HasOwnMemory(first)) {
    title += fmt::format(", scratch for {} {}", first.threads(),
                         first.threads() == 1 ? "thread" : "threads");
  }
  const int count = plan.memory_size();
  if (!verbose && count > kMostStagesOfMemory) {
    title += fmt::format(", of the {} fullest of {} stages", kMostStagesOfMemory, count);
    return title + ":\n" + MemoryTable(plan, FullestStages(plan, kMostStagesOfMemory));
  }
  std::string text = title + ":\n";
  for (int begin = 0; begin < count; begin += kMostStagesOfMemory) {
    std::vector<int> stages;
    for (int i = begin; i < std::min(begin + kMostStagesOfMemory, count); ++i) stages.push_back(i);
    text += MemoryTable(plan, stages);
  }
  return text;
}

std::string MemoryText(const v1::Plan& plan, bool verbose) {
  if (plan.memory().empty()) return "";
  std::string text = MemoryTables(plan, verbose);
  for (int stage = 0; stage < plan.memory_size(); ++stage) {
    const auto& memory = plan.memory(stage);
    for (const auto& line : memory.compiled())
      text += Inner(fmt::format("stage {}: {}", stage, line));
    if (!verbose || memory.peak().empty()) continue;
    text += fmt::format("  stage {}:\n", stage);
    for (const auto& line : memory.peak()) text += fmt::format("    {}\n", line);
  }
  return text;
}

// "within islands", "1.2 MB across islands"; empty where islands are not known.
std::string AcrossText(const v1::AxisTraffic& entry) {
  if (!entry.has_across_islands_bytes_per_step()) return "";
  const double across = entry.across_islands_bytes_per_step();
  if (across == 0) return "within islands";
  if (across == entry.bytes_per_step()) return "across islands";
  return Scaled(across, "B") + " across islands";
}

std::string TrafficText(const v1::Plan& plan) {
  std::string text = "\nbytes sent by one rank per step:\n";
  Table table({{"axis"}, {"purpose"}, {"bytes", kRight}, {"links"}});
  bool has_islands = false;
  for (const auto& entry : plan.traffic()) {
    table.AddRow({{entry.axis()},
                  {entry.purpose()},
                  {Scaled(entry.bytes_per_step(), "B")},
                  {AcrossText(entry)}});
    has_islands = has_islands || entry.has_across_islands_bytes_per_step();
  }
  text += plan.traffic().empty() ? "  none\n" : Indented(table);
  if (has_islands) text += Inner(kIslandMeaning);
  if (plan.tensor_parallel_parts() > 1) {
    text +=
        Inner(fmt::format("rows are exchanged between tensor ranks in {} parts, one part while "
                          "a matmul computes another",
                          plan.tensor_parallel_parts()));
  }
  for (const auto& line : plan.tensor_parts_choice()) text += Inner(line);
  return text;
}

// The first actions, in one line with `begin`, and the number of the others.
std::string ActionsLine(std::string line, const v1::PipeSchedule& rank) {
  constexpr size_t kMoreColumns = 14;  // " … 99999 more"
  const auto& actions = rank.actions();
  int shown = 0;
  for (; shown < actions.size(); ++shown) {
    const bool is_last = shown + 1 == actions.size();
    const size_t columns = DisplayColumns(line) + 1 + DisplayColumns(actions[shown]);
    if (columns + (is_last ? 0 : kMoreColumns) > kLineColumns) break;
    line += " " + actions[shown];
  }
  if (shown < actions.size()) line += fmt::format(" … {} more", actions.size() - shown);
  return line + "\n";
}

std::string ActionsText(const v1::SchedulePlan& schedule, bool verbose) {
  const int count = schedule.ranks_size();
  const int shown = verbose ? count : std::min(count, kMostStagesOfSchedule);
  size_t most_peak = 1;
  for (const auto& rank : schedule.ranks())
    most_peak = std::max(most_peak, fmt::to_string(rank.peak_live_activations()).size());
  std::string text;
  for (int stage = 0; stage < shown; ++stage) {
    const auto& rank = schedule.ranks(stage);
    const std::string begin =
        fmt::format("stage {:>{}} (peak {:>{}} in flight):", stage,
                    fmt::to_string(shown - 1).size(), rank.peak_live_activations(), most_peak);
    text += verbose ? Inner(fmt::format("{} {}", begin, fmt::join(rank.actions(), " ")))
                    : ActionsLine("  " + begin, rank);
  }
  if (shown < count) text += fmt::format("  … and {} more (--verbose lists all)\n", count - shown);
  return text;
}

std::string ScheduleText(const v1::Plan& plan, bool verbose) {
  const v1::SchedulePlan& schedule = plan.schedule();
  std::string text =
      fmt::format("\nschedule: {}, {} microbatches, bubble {:.1f}%\n", schedule.name(),
                  schedule.microbatches(), 100 * schedule.bubble_ratio());
  if (const std::string line = PairsLine(plan); !line.empty()) text += Inner(line);
  for (const auto& line : plan.schedule_choice()) text += Inner(line);
  return text + ActionsText(schedule, verbose);
}

std::string SliceText(const v1::RankPlacement& rank) {
  if (!rank.has_slice_process()) return "";
  return fmt::format("process {} of a slice of {} chips", rank.slice_process().task(),
                     fmt::join(rank.slice_process().bounds(), "x"));
}

std::string RanksText(const v1::Plan& plan) {
  const auto degrees = AxesOf(plan.mesh());
  std::vector<Table::Column> columns = {{"rank", kRight}};
  for (const auto& [axis, degree] : degrees) columns.push_back({axis, kRight});
  for (const char* title : {"worker", "device", "island", "chip"}) columns.push_back({title});
  Table table(std::move(columns));
  for (const auto& rank : plan.ranks()) {
    std::vector<TableCell> row = {{fmt::to_string(rank.rank())}};
    const auto coordinates = AxesOf(rank.coordinates());
    for (size_t axis = 0; axis < degrees.size(); ++axis)
      row.push_back({degrees[axis].second > 1 ? fmt::to_string(coordinates[axis].second) : ""});
    row.push_back({rank.worker()});
    row.push_back({rank.worker().empty() ? "" : fmt::to_string(rank.device())});
    row.push_back({rank.worker().empty() ? "" : rank.island()});
    row.push_back({SliceText(rank)});
    table.AddRow(std::move(row));
  }
  return "\nranks:\n" + Indented(table);
}

}  // namespace

std::string PlanToText(const v1::Plan& plan, const PlanTextOptions& options) {
  const bool verbose = options.verbose;
  std::string text = FiguresText(plan, options) + StagesText(plan, verbose) +
                     MemoryText(plan, verbose) + TrafficText(plan) + ScheduleText(plan, verbose);
  if (verbose) {
    text += RanksText(plan) + Section("owners", plan.ownership()) +
            Section("what each axis leaves unsharded", plan.cannot_fix()) +
            Section("options of the devices' compiler", plan.compiler_options());
  }
  if (!options.fault_cost.empty()) text += "\n" + Outer("checkpoints: " + options.fault_cost);
  return text + Section("warnings", plan.warnings());
}

}  // namespace troupe
