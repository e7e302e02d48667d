#include "report/trace_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "report/action_kinds.h"
#include "report/bar_chart.h"
#include "report/timeline.h"

namespace troupe {
namespace {

constexpr int kMostRanksOfTrace = 32;

std::optional<int64_t> LastCommonStep(const v1::TraceJobResponse& trace) {
  std::optional<std::set<int64_t>> common;
  for (const v1::RankTrace& rank : trace.ranks()) {
    std::set<int64_t> steps;
    for (const v1::TraceEvent& event : rank.events()) {
      if (event.kind() == v1::TraceEvent::STEP && (!common || common->contains(event.step())))
        steps.insert(event.step());
    }
    common = std::move(steps);
  }
  if (!common || common->empty()) return {};
  return *common->rbegin();
}

int64_t BeginTime(const v1::RankTrace& rank, const v1::TraceEvent& event) {
  return event.begin_ns() + rank.realtime_offset_ns();
}

std::string PhaseName(const v1::RankTrace& rank, const v1::TraceEvent& event) {
  return event.name() >= 0 && event.name() < rank.names_size() ? rank.names(event.name()) : "";
}

// Returns how long the rank was in each kind of phase, and between them.
Bar BarOf(const v1::RankTrace& rank, int64_t step) {
  Bar bar = {fmt::format("rank {}", rank.rank()), {}};
  const std::vector<std::string> kinds = PhaseKinds();
  double rest = 0;
  for (const v1::TraceEvent& event : rank.events()) {
    if (event.step() != step) continue;
    const double seconds = static_cast<double>(event.duration_ns()) * 1e-9;
    if (event.kind() == v1::TraceEvent::STEP) rest += seconds;
    if (event.kind() != v1::TraceEvent::ACTION) continue;
    rest -= seconds;
    const std::string name = PhaseName(rank, event);
    const size_t kind = KindOfPhase(name);
    // A phase of no other kind is shown by its name.
    const std::string& shown = kind + 1 < kinds.size() ? kinds[kind] : name;
    const auto found = std::ranges::find(bar.parts, shown, &BarPart::kind);
    if (found == bar.parts.end()) {
      bar.parts.push_back({shown, seconds});
    } else {
      found->value += seconds;
    }
  }
  bar.parts.push_back({"between phases", std::max(rest, 0.0)});
  return bar;
}

TimelineRow RowOf(const v1::RankTrace& rank, int64_t step, int64_t begin) {
  TimelineRow row = {fmt::format("rank {}", rank.rank()), {}};
  std::optional<int> first_chunk;
  for (const v1::TraceEvent& event : rank.events()) {
    if (event.kind() != v1::TraceEvent::ACTION || event.step() != step) continue;
    const std::string name = PhaseName(rank, event);
    const size_t kind = KindOfPhase(name);
    const bool is_action = kind < ActionKinds().size();
    if (is_action) first_chunk = std::min(first_chunk.value_or(event.chunk()), event.chunk());
    const double from = static_cast<double>(BeginTime(rank, event) - begin) * 1e-9;
    row.blocks.push_back({from, from + static_cast<double>(event.duration_ns()) * 1e-9, kind, name,
                          is_action && event.chunk() != *first_chunk});
  }
  return row;
}

}  // namespace

void DrawTrace(const v1::TraceJobResponse& trace, Markup* page) {
  const std::optional<int64_t> step = LastCommonStep(trace);
  if (!step) return;
  int64_t begin = std::numeric_limits<int64_t>::max();
  for (const v1::RankTrace& rank : trace.ranks()) {
    for (const v1::TraceEvent& event : rank.events()) {
      if (event.kind() == v1::TraceEvent::STEP && event.step() == *step)
        begin = std::min(begin, BeginTime(rank, event));
    }
  }
  Timeline timeline;
  timeline.title = fmt::format("Schedule as it ran: step {}", *step);
  timeline.kinds = PhaseKinds();
  BarChart chart;
  chart.title = fmt::format("Phases of step {}", *step);
  chart.unit = "s";
  chart.kinds = timeline.kinds;
  for (int i = 0; i < std::min(trace.ranks_size(), kMostRanksOfTrace); ++i) {
    timeline.rows.push_back(RowOf(trace.ranks(i), *step, begin));
    chart.bars.push_back(BarOf(trace.ranks(i), *step));
  }
  if (trace.ranks_size() > kMostRanksOfTrace) {
    timeline.note =
        fmt::format("The first {} of {} ranks are drawn.", kMostRanksOfTrace, trace.ranks_size());
  }
  Draw(timeline, page);
  Draw(chart, page);
}

}  // namespace troupe
