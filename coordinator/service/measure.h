// Adds the coordinator's measurements to its metrics.
#ifndef TROUPE_COORDINATOR_SERVICE_MEASURE_H_
#define TROUPE_COORDINATOR_SERVICE_MEASURE_H_

#include <set>
#include <string>

#include "base/metrics/metrics.h"
#include "coordinator/machine/coordinator_state.h"
#include "coordinator/state/event.h"

namespace troupe {

// Records which build of the coordinator runs.
void RecordBuild(Metrics& metrics);

void RecordMeasurement(const Measurement& measurement, Metrics& metrics);

// Records a job that this coordinator found in its catalog, so that its counters continue from
// their former values.
void RecordRecoveredJob(const Job& job, Metrics& metrics);

// Sets the gauges of one job from its state.
void RecordJob(const Job& job, Metrics& metrics);

// Sets the gauges of the fleet. `workers`: the names that have a series; updated.
void RecordFleet(const Fleet& fleet, std::set<std::string>* workers, Metrics& metrics);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_MEASURE_H_
