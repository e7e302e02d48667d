#include "cli/output/worker_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <map>

#include "base/clock.h"
#include "cli/output/cores_text.h"
#include "cli/output/json_text.h"
#include "cli/output/table.h"

namespace troupe {
namespace {

std::string DrainTimeText(int64_t wall_ns) { return UtcText(wall_ns / 1'000'000'000); }

std::string DrainText(const v1::WorkerStatus& worker) {
  const v1::WorkerDrain& drain = worker.drain();
  const bool ends = drain.end_wall_time_ns() != 0;
  std::string text = ends ? fmt::format("ends by {}", DrainTimeText(drain.end_wall_time_ns()))
                          : "drained by an operator";
  if (!ends && drain.since_wall_time_ns() != 0)
    text += fmt::format(" since {}", DrainTimeText(drain.since_wall_time_ns()));
  if (!drain.reason().empty()) text += ": " + drain.reason();
  return text;
}

void AddDrain(const v1::WorkerStatus& worker, Table* table) {
  table->AddLine(DrainText(worker));
  const v1::WorkerDrain& drain = worker.drain();
  if (drain.order_end_wall_time_ns() != 0) {
    table->AddLine(fmt::format("the order ends at {}, or by `troupe workers undrain {}`",
                               DrainTimeText(drain.order_end_wall_time_ns()), worker.name()));
  }
  for (const v1::StayingJob& job : drain.staying_jobs())
    table->AddLine(fmt::format("{} stays: {}", job.name(), job.reason()));
}

// Returns "8 cuda", or the numbers of several kinds, "1 cpu, 8 cuda".
std::string DevicesText(const v1::WorkerStatus& worker) {
  std::map<std::string, int> devices;  // by kind
  for (const v1::Device& device : worker.devices()) ++devices[device.kind().kind()];
  std::string text;
  for (const auto& [kind, count] : devices)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, kind);
  return text;
}

void AddWorker(const v1::WorkerStatus& worker, Table* table) {
  table->AddRow({{worker.name()},
                 {worker.state(), ColourOfWorker(worker.state())},
                 {DevicesText(worker)},
                 {worker.island()},
                 {worker.host()},
                 {worker.pid() == 0 ? "" : fmt::to_string(worker.pid())},
                 {fmt::format("{}", fmt::join(worker.jobs(), " "))}});
  for (const v1::RankCores& rank : worker.ranks()) {
    table->AddLine(
        fmt::format("rank {} of {} on cores {}", rank.rank(), rank.job(), CoresText(rank.cores())));
  }
  for (const v1::Device& device : worker.devices()) {
    if (device.condemned().empty()) continue;
    table->AddLine(fmt::format("device {} is condemned: {}", device.index(), device.condemned()));
  }
  if (worker.has_drain()) AddDrain(worker, table);
  for (const v1::SetAside& part : worker.set_aside()) table->AddLine(SetAsideText(part));
}

}  // namespace

std::string WorkerTableText(const std::vector<v1::WorkerStatus>& workers, bool colours) {
  constexpr auto kRight = Table::Align::kRight;
  Table table(
      {{"WORKER"}, {"STATE"}, {"DEVICES"}, {"ISLAND"}, {"HOST"}, {"PID", kRight}, {"JOBS"}});
  for (const v1::WorkerStatus& worker : workers) AddWorker(worker, &table);
  return table.Text(colours);
}

}  // namespace troupe
