// The coordinator's metrics: their families, and what each measurement adds to them.
#ifndef TROUPE_COORDINATOR_MEASURE_H_
#define TROUPE_COORDINATOR_MEASURE_H_

#include <set>
#include <string>

#include "base/metrics.h"
#include "coordinator/event.h"
#include "coordinator/machine.h"

namespace troupe {

void DeclareCoordinatorMetrics(Metrics& metrics);

void RecordMeasurement(const Measurement& measurement, Metrics& metrics);

// A job that this coordinator found in its catalog: counters go on where they were.
void RecordRecoveredJob(const Job& job, Metrics& metrics);

// Sets the gauges of one job to what it says.
void RecordJob(const Job& job, Metrics& metrics);

// `workers` are the names that have a series; brought up to date.
void RecordFleet(const Fleet& fleet, std::set<std::string>* workers, Metrics& metrics);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_MEASURE_H_
