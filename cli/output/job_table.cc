#include "cli/output/job_table.h"

#include <fmt/format.h>

#include "cli/output/relative_path.h"
#include "cli/output/table.h"
#include "report/text/duration_text.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

constexpr size_t kLeastNameColumns = 16;

std::string DoneText(const v1::Job& job) {
  return job.steps() > 0 ? fmt::format("{}%", 100 * job.step() / job.steps()) : "";
}

std::string ReasonText(const v1::Job& job) {
  if (!job.moving().empty()) return job.moving();
  if (!job.waiting_for().empty()) return job.waiting_for();
  // A job that recovers has not failed; the cause is that of the group that broke.
  return job.state() == v1::JOB_STATE_RECOVERING ? job.last_failure().cause()
                                                 : job.failure().cause();
}

}  // namespace

std::string JobTableText(const std::vector<v1::Job>& jobs, int64_t now_ns, const TextStyle& style) {
  constexpr auto kLeft = Table::Align::kLeft, kRight = Table::Align::kRight;
  constexpr auto kShortened = Table::Narrow::kShortened, kLeftOut = Table::Narrow::kLeftOut;
  Table table({{"NAME", kLeft, kShortened, kLeastNameColumns},
               {"STATE"},
               {"STEP", kRight},
               {.title = "DONE", .align = kRight, .narrow = kLeftOut, .importance = 2},
               {.title = "LOSS", .align = kRight, .narrow = kLeftOut, .importance = 4},
               {.title = "AGE", .align = kRight, .narrow = kLeftOut, .importance = 3},
               {.title = "REASON", .narrow = Table::Narrow::kBelow, .importance = 1}});
  for (const v1::Job& job : jobs) {
    table.AddRow({{job.name()},
                  {StateText(job), ColourOf(job)},
                  {fmt::format("{}/{}", job.step(), job.steps())},
                  {DoneText(job)},
                  {job.has_loss() ? fmt::format("{:.4f}", job.loss()) : "-"},
                  {AgeText(job.create_wall_time_ns(), now_ns)},
                  {WithRelativePaths(ReasonText(job), style.directory)}});
  }
  return table.Text(style);
}

}  // namespace troupe
