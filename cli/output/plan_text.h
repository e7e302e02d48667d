// A plan as text for people: `troupe plan` prints it. Pure.
#ifndef TROUPE_CLI_OUTPUT_PLAN_TEXT_H_
#define TROUPE_CLI_OUTPUT_PLAN_TEXT_H_

#include <string>

#include "plan/cost/step_time.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

struct PlanTextOptions {
  const StepTime* time = nullptr;  // null: no estimate
  std::string fault_cost;          // empty: the text does not state it
  // Paths beneath it are shown relative to it. Empty: all are shown as they are.
  std::string working_directory;
  // Also prints what is rarely read: the channels of samples, the values at the peak of memory, all
  // actions and ranks, owners, what each axis replicates, and the options of the compiler.
  bool verbose = false;
};

// Returns mesh, model, estimate, data, stages, memory, traffic, schedule and what a fault costs;
// warnings come last. Lines have at most 80 columns, apart from words that are longer and the
// values at the peak of memory.
std::string PlanToText(const v1::Plan& plan, const PlanTextOptions& options = {});

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_PLAN_TEXT_H_
