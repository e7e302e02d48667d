// A planner for simulated clusters: meshes of the degrees asked for, ranks placed where they were
// if they can be.
#ifndef TROUPE_TESTS_SIMULATION_SIMULATED_PLANNER_H_
#define TROUPE_TESTS_SIMULATION_SIMULATED_PLANNER_H_

#include "coordinator/planner.h"

namespace troupe::simulation {

Planner MakeSimulatedPlanner();

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_SIMULATED_PLANNER_H_
