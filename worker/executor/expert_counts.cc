#include "worker/executor/expert_counts.h"

#include "model/program/control_word.h"

namespace troupe {
namespace {

using model::Axis;

Status ReadTotals(const model::Program& program, kernels::Executable& executable,
                  model::ValueId totals, std::vector<double>* lanes) {
  lanes->resize(static_cast<size_t>(program.value(totals).elements()));
  return executable.Read(totals, 0, std::as_writable_bytes(std::span(*lanes)));
}

}  // namespace

Status ReadExpertLoad(const model::Program& program, kernels::Executable& executable,
                      std::vector<double>* lanes, std::vector<double>* load) {
  for (int a = 0; a < model::kNumAxes; ++a) {
    if (static_cast<Axis>(a) != Axis::kPipe && program.mesh.coordinates.of[a] != 0)
      return OkStatus();
  }
  for (const model::ValueId totals : program.router_totals) {
    TROUPE_RETURN_IF_ERROR(ReadTotals(program, executable, totals, lanes));
    load->resize(lanes->size() - model::kRouterLanes);
    for (size_t e = 0; e < load->size(); ++e) (*load)[e] += (*lanes)[model::kRouterLanes + e];
  }
  return OkStatus();
}

}  // namespace troupe
