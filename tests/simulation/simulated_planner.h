// A planner for simulated clusters: meshes with the requested degrees, ranks placed where they were
// before if possible.
#ifndef TROUPE_TESTS_SIMULATION_SIMULATED_PLANNER_H_
#define TROUPE_TESTS_SIMULATION_SIMULATED_PLANNER_H_

#include "coordinator/state/planner.h"

namespace troupe::simulation {

Planner MakeSimulatedPlanner();

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_SIMULATED_PLANNER_H_
