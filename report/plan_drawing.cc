#include "report/plan_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text/scaled.h"
#include "plan/cost/step_time.h"
#include "plan/schedules/simulator.h"
#include "report/action_kinds.h"
#include "report/bar_chart.h"
#include "report/legend.h"
#include "report/text/status_text.h"
#include "report/timeline.h"

namespace troupe {
namespace {

constexpr int kMostRanksDrawn = 512;
constexpr int kMostStagesDrawn = 64;

size_t IndexOf(const std::string& text, std::vector<std::string>* known) {
  const auto found = std::ranges::find(*known, text);
  if (found != known->end()) return static_cast<size_t>(found - known->begin());
  known->push_back(text);
  return known->size() - 1;
}

std::string PlaceText(const v1::RankPlacement& rank) {
  const v1::MeshCoordinates& at = rank.coordinates();
  std::string text = fmt::format(
      "rank {}: pipe {}, data_replicate {}, data_shard {}, context {}, expert {}, tensor {}",
      rank.rank(), at.pipe(), at.data_replicate(), at.data_shard(), at.context(), at.expert(),
      at.tensor());
  if (!rank.worker().empty()) {
    text += fmt::format("; {} device {}, host {}", rank.worker(), rank.device(), rank.host());
  }
  return text;
}

void DrawRanksOfStage(const v1::Plan& plan, int stage, std::vector<std::string>* hosts,
                      Markup* page) {
  page->Open("p", {{"class", "ranks"}});
  page->Element("b", {}, fmt::format("stage {}", stage));
  int drawn = 0, left_out = 0;
  for (const v1::RankPlacement& rank : plan.ranks()) {
    if (rank.coordinates().pipe() != stage) continue;
    if (rank.rank() >= kMostRanksDrawn) {
      ++left_out;
      continue;
    }
    ++drawn;
    const std::string colour = ColourClass(IndexOf(rank.host(), hosts));
    page->Element("span", {{"class", "rank " + colour}, {"title", PlaceText(rank)}},
                  fmt::to_string(rank.rank()));
  }
  if (left_out > 0) page->Text(fmt::format("{} {} more", drawn > 0 ? "and" : "", left_out));
  page->Close();
}

// Draws the blocks of a chunk as letters, each kind of block in a colour.
void DrawBlocks(const v1::ChunkPlan& chunk, std::vector<std::string>* letters, Markup* page) {
  page->Open("td", {{"class", "blocks"}});
  if (chunk.has_embedding()) page->Element("span", {{"class", "block c8"}}, "embedding");
  for (const char letter : chunk.blocks()) {
    const std::string text(1, letter);
    const size_t colour = IndexOf(text, letters) % 8;
    page->Element("span", {{"class", fmt::format("block c{}", colour)}}, text);
  }
  if (chunk.has_head()) page->Element("span", {{"class", "block c8"}}, "head");
  page->Close();
}

// Whether every chunk is on a rank of the schedule, and each rank has actions.
bool IsComplete(const v1::Plan& plan) {
  const int ranks = plan.schedule().ranks_size();
  return ranks > 0 && std::ranges::all_of(plan.chunks(), [&](const v1::ChunkPlan& chunk) {
           return chunk.pipe_rank() >= 0 && chunk.pipe_rank() < ranks;
         });
}

StatusOr<std::vector<TimelineRow>> RowsOfSchedule(const v1::Plan& plan) {
  TROUPE_ASSIGN_OR_RETURN(const Schedule schedule, ScheduleOf(plan));
  const std::vector<ActionCosts> costs(static_cast<size_t>(plan.chunks_size()));
  TROUPE_ASSIGN_OR_RETURN(
      const SimulationResult simulated,
      Simulate(schedule, costs,
               {.indivisible_pairs = plan.schedule().interleaves_pairs(), .spans = true}));
  std::vector<TimelineRow> rows;
  for (size_t rank = 0; rank < schedule.actions.size() && rank < kMostStagesDrawn; ++rank) {
    TimelineRow& row = rows.emplace_back(TimelineRow{fmt::format("stage {}", rank), {}});
    const std::vector<Action>& actions = schedule.actions[rank];
    for (size_t i = 0; i < actions.size(); ++i) {
      ActionSpan span = simulated.spans[rank][i];
      std::string label = ToText(actions[i]);
      const size_t kind = KindOf(actions[i]);
      // The two of a pair that run as one are one block.
      if (plan.schedule().interleaves_pairs() && actions[i].overlaps_next &&
          i + 1 < actions.size()) {
        label += "|" + ToText(actions[++i]);
      }
      row.blocks.push_back(
          {span.begin, span.end, kind, label,
           schedule.chunks[rank].size() > 1 && actions[i].chunk != schedule.chunks[rank].front()});
    }
  }
  return rows;
}

}  // namespace

void DrawLayout(const v1::Plan& plan, Markup* page) {
  const v1::MeshDegrees& mesh = plan.mesh();
  page->Element("p", {},
                fmt::format("{} ranks = pipe {} × data_replicate {} × data_shard {} × context {} "
                            "× expert {} × tensor {}",
                            plan.ranks_size(), mesh.pipe(), mesh.data_replicate(),
                            mesh.data_shard(), mesh.context(), mesh.expert(), mesh.tensor()));
  std::vector<std::string> hosts;
  for (int stage = 0; stage < std::min(mesh.pipe(), kMostStagesDrawn); ++stage) {
    DrawRanksOfStage(plan, stage, &hosts, page);
  }
  if (hosts.empty() || hosts.front().empty()) return;
  std::vector<LegendItem> items;
  for (size_t i = 0; i < hosts.size(); ++i) items.push_back({ColourClass(i), hosts[i]});
  DrawLegend(items, page);
}

void DrawStages(const v1::Plan& plan, Markup* page) {
  page->Open("div", {{"class", "wide"}});
  page->Open("table", {{"class", "stages"}});
  page->Open("tr");
  for (const char* title :
       {"stage", "chunk", "blocks", "parameters", "one forward", "memory of a rank"}) {
    page->Element("th", {}, title);
  }
  page->Close();
  std::vector<std::string> letters;
  for (const v1::ChunkPlan& chunk : plan.chunks()) {
    page->Open("tr");
    page->Element("td", {}, fmt::to_string(chunk.pipe_rank()));
    page->Element("td", {}, fmt::to_string(chunk.chunk()));
    DrawBlocks(chunk, &letters, page);
    page->Element("td", {}, Scaled(static_cast<double>(chunk.parameters()), ""));
    page->Element("td", {}, Scaled(chunk.forward_flops(), "FLOP"));
    const bool is_known = chunk.pipe_rank() >= 0 && chunk.pipe_rank() < plan.memory_size();
    page->Element(
        "td", {},
        is_known ? Scaled(static_cast<double>(plan.memory(chunk.pipe_rank()).total_bytes()), "B")
                 : "");
    page->Close();
  }
  page->Close();
  page->Close();
  page->Element("p", {{"class", "note"}},
                fmt::format("heaviest chunk / mean = {:.3f}", plan.imbalance()));
}

void DrawMemory(const v1::Plan& plan, Markup* page) {
  BarChart chart;
  chart.title = "Memory of a rank, as planned";
  chart.unit = "B";
  for (int stage = 0; stage < std::min(plan.memory_size(), kMostStagesDrawn); ++stage) {
    const v1::RankMemory& memory = plan.memory(stage);
    const auto bytes = [](int64_t count) { return static_cast<double>(count); };
    // On a GPU the snapshot is in the memory of the host.
    const bool is_of_gpu = memory.reserve_bytes() > 0;
    chart.bars.push_back({fmt::format("stage {}", stage),
                          {{"parameters", bytes(memory.parameter_bytes())},
                           {"compute copies", bytes(memory.compute_copy_bytes())},
                           {"gradients", bytes(memory.gradient_bytes())},
                           {"optimizer", bytes(memory.optimizer_bytes())},
                           {"saved activations", bytes(memory.saved_bytes())},
                           {"temporary", bytes(memory.temporary_bytes())},
                           {"scratch", bytes(memory.scratch_bytes())},
                           {"snapshot", is_of_gpu ? 0 : bytes(memory.snapshot_bytes())},
                           {"reserve", bytes(memory.reserve_bytes())}}});
  }
  Draw(chart, page);
}

void DrawSchedule(const v1::Plan& plan, Markup* page) {
  Timeline timeline;
  timeline.title = fmt::format("Schedule as planned: {}, {} microbatches, bubble {:.1f}%",
                               plan.schedule().name(), plan.schedule().microbatches(),
                               100 * plan.schedule().bubble_ratio());
  timeline.kinds = ActionKinds();
  if (IsComplete(plan)) {
    auto rows = RowsOfSchedule(plan);
    if (rows.ok()) timeline.rows = std::move(*rows);
  }
  timeline.note = timeline.rows.empty()
                      ? "The plan has no schedule that can be drawn."
                      : "All chunks cost the same here, and transfers take no time: this is how "
                        "the bubble is counted. F0.1 is the forward of chunk 0 for microbatch 1.";
  if (plan.schedule().ranks_size() > kMostStagesDrawn) {
    timeline.note += fmt::format(" The first {} stages are drawn.", kMostStagesDrawn);
  }
  Draw(timeline, page);
}

void DrawTraffic(const v1::Plan& plan, Markup* page) {
  BarChart chart;
  chart.title = "Bytes that one rank sends in a step";
  chart.unit = "B";
  for (const v1::AxisTraffic& entry : plan.traffic()) {
    const double across = entry.across_islands_bytes_per_step();
    Bar& bar = chart.bars.emplace_back();
    bar.label = fmt::format("{} ({})", entry.axis(), entry.purpose());
    bar.parts = {{entry.has_across_islands_bytes_per_step() ? "within islands" : "sent",
                  entry.bytes_per_step() - across},
                 {"across islands", across}};
  }
  if (!chart.bars.empty()) Draw(chart, page);
  if (std::ranges::any_of(plan.traffic(), &v1::AxisTraffic::has_across_islands_bytes_per_step)) {
    page->Element("p", {{"class", "note"}}, kIslandMeaning);
  }
}

}  // namespace troupe
