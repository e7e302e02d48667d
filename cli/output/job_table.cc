#include "cli/output/job_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/output/duration_text.h"
#include "cli/output/json_text.h"
#include "cli/output/table.h"

namespace troupe {
namespace {

std::string DoneText(const v1::Job& job) {
  return job.steps() > 0 ? fmt::format("{}%", 100 * job.step() / job.steps()) : "";
}

std::string ReasonText(const v1::Job& job) {
  if (!job.moving().empty()) return job.moving();
  return job.waiting_for().empty() ? job.failure().cause() : job.waiting_for();
}

// The lower, the sooner a job's loss is read.
int InterestClass(const v1::Job& job) {
  switch (job.state()) {
    case v1::JOB_STATE_RUNNING:
      return 0;
    case v1::JOB_STATE_SUCCEEDED:
    case v1::JOB_STATE_FAILED:
    case v1::JOB_STATE_CANCELLED:
      return 2;
    default:
      return 1;
  }
}

}  // namespace

std::vector<size_t> OrderOfInterest(const std::vector<ListedJob>& jobs) {
  std::vector<size_t> order(jobs.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  std::ranges::stable_sort(order, {},
                           [&jobs](size_t index) { return InterestClass(jobs[index].job); });
  return order;
}

std::string JobTableText(const std::vector<ListedJob>& jobs, int64_t now_ns, bool colours) {
  constexpr auto kRight = Table::Align::kRight;
  Table table({{"NAME"},
               {"STATE"},
               {"STEP", kRight},
               {"DONE", kRight},
               {"LOSS", kRight},
               {"AGE", kRight},
               {"REASON"}});
  for (const auto& [job, loss] : jobs) {
    table.AddRow({{job.name()},
                  {StateText(job), ColourOf(job)},
                  {fmt::format("{}/{}", job.step(), job.steps())},
                  {DoneText(job)},
                  {loss ? fmt::format("{:.4f}", *loss) : "-"},
                  {AgeText(job.create_wall_time_ns(), now_ns)},
                  {ReasonText(job)}});
  }
  return table.Text(colours);
}

}  // namespace troupe
