#include "worker/executor/expert_counts.h"

#include "model/program/router_attributes.h"

namespace troupe {

using model::Axis;

std::vector<model::ValueId> ReportedRouterTotals(const model::Program& program) {
  for (int a = 0; a < model::kNumAxes; ++a) {
    if (static_cast<Axis>(a) != Axis::kPipe && program.mesh.coordinates.of[a] != 0) return {};
  }
  return program.router_totals;
}

void AddExpertLoad(std::span<const double> totals, std::vector<double>* load) {
  const std::span<const double> experts = totals.subspan(model::kRouterLanes);
  load->resize(experts.size());
  for (size_t e = 0; e < experts.size(); ++e) (*load)[e] += experts[e];
}

}  // namespace troupe
