#include "cli/output/worker_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/wrapped.h"
#include "cli/output/table.h"
#include "report/text/status_text.h"

namespace troupe {
namespace {

constexpr size_t kLeastWorkerColumns = 16;

void AddWorker(const v1::WorkerStatus& worker, Table* table) {
  table->AddRow({{worker.name()},
                 {worker.state(), ColourOfWorker(worker.state())},
                 {DeviceCounts(worker)},
                 {worker.island()},
                 {worker.host()},
                 {worker.pid() == 0 ? "" : fmt::to_string(worker.pid())},
                 {fmt::format("{}", fmt::join(worker.jobs(), " "))}});
  for (const v1::RankCores& rank : worker.ranks()) {
    table->AddLine(fmt::format("rank {} of {} on cores {}", rank.rank(), rank.job(),
                               CoreRanges(rank.cores())));
  }
  for (const std::string& line : Restrictions(worker)) table->AddLine(line);
}

bool StatesIsland(const v1::WorkerStatus& worker) { return !worker.island().empty(); }

}  // namespace

std::string WorkerTableText(const std::vector<v1::WorkerStatus>& workers, const TextStyle& style) {
  constexpr auto kLeft = Table::Align::kLeft, kRight = Table::Align::kRight;
  constexpr auto kBelow = Table::Narrow::kBelow;
  Table table({{"WORKER", kLeft, Table::Narrow::kShortened, kLeastWorkerColumns},
               {"STATE"},
               {"DEVICES"},
               {.title = "ISLAND", .narrow = kBelow, .importance = 3},
               {.title = "HOST", .narrow = kBelow, .importance = 2},
               {"PID", kRight},
               {.title = "JOBS", .narrow = kBelow, .importance = 1}});
  for (const v1::WorkerStatus& worker : workers) AddWorker(worker, &table);
  std::string text = table.Text(style);
  if (std::ranges::any_of(workers, StatesIsland)) {
    text += Wrapped(kIslandMeaning, style.columns, "  ", LongWords::kBroken) + "\n";
  }
  return text;
}

}  // namespace troupe
