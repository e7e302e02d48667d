// Measures the exposed time of dispatch and combination in a DualPipeV step over two expert ranks,
// which are threads of this process, with a given delay for every message. Runs alternate between
// interleaved and not interleaved overlapped pairs.
//
// Prints one JSON line for each of the two: medians over the steps after the first.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/flag_parser.h"
#include "plan/job/job_defaults.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

struct Arguments {
  double delay_ms = 2;
  int64_t steps = 4;
  int64_t hidden = 256;
};

v1::JobSpec Job(const Arguments& arguments) {
  v1::JobSpec spec = Mixture({.expert = 2, .schedule = "DualPipeV"}, arguments.steps);
  v1::ModelSpec& model = *spec.mutable_model();
  model.set_hidden_size(arguments.hidden);
  model.clear_head_dim();
  model.set_moe_intermediate_size(arguments.hidden);
  spec.mutable_training()->set_global_batch_size(24);
  ApplyDefaults(&spec);
  return spec;
}

double Median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

struct Measured {
  std::vector<double> step_seconds;
  std::vector<double> exposed, total;  // per step, on rank 0
};

void Run(const Arguments& arguments, bool interleaves, Measured* measured) {
  TrainOptions options{.steps = arguments.steps};
  options.interleave_pairs = interleaves;
  options.message_delay = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::milli>(arguments.delay_ms));
  const TrainResult result = Train(Job(arguments), options);
  for (const Status& status : result.statuses) TROUPE_CHECK_OK(status);
  for (size_t i = 1; i < result.steps[0].size(); ++i)
    measured->step_seconds.push_back(result.steps[0][i].step_seconds);
  const PurposeSeconds& dispatch = result.communication[0][static_cast<size_t>(Purpose::kDispatch)];
  const auto steps = static_cast<double>(arguments.steps);
  measured->exposed.push_back(dispatch.exposed / steps);
  measured->total.push_back(dispatch.total / steps);
}

void Bench(const Arguments& arguments) {
  constexpr int kTurns = 3;
  Measured apart, interleaved;
  for (int turn = 0; turn < kTurns; ++turn) {
    Run(arguments, false, &apart);
    Run(arguments, true, &interleaved);
  }
  for (const auto& [name, measured] :
       {std::pair("one action after the other", &apart), std::pair("interleaved", &interleaved)}) {
    fmt::print(
        "{{\"bench\": \"pairs\", \"pairs\": \"{}\", \"message_delay_ms\": {}, \"hidden\": {}, "
        "\"step_seconds\": {:.4f}, \"dispatch_total_seconds\": {:.4f}, "
        "\"dispatch_exposed_seconds\": {:.4f}}}\n",
        name, arguments.delay_ms, arguments.hidden, Median(measured->step_seconds),
        Median(measured->total), Median(measured->exposed));
  }
}

Status SetArguments(const std::vector<std::string>& values, Arguments* arguments) {
  if (!values.empty()) {
    TROUPE_ASSIGN_OR_RETURN(arguments->delay_ms,
                            ParseNumber<double>("DELAY_MS", values[0], {.least = 0}));
  }
  if (values.size() > 1) {
    TROUPE_ASSIGN_OR_RETURN(arguments->steps,
                            ParseNumber<int64_t>("STEPS", values[1], {.least = 2}));
  }
  if (values.size() > 2) {
    TROUPE_ASSIGN_OR_RETURN(arguments->hidden,
                            ParseNumber<int64_t>("HIDDEN", values[2], {.least = 16}));
  }
  return OkStatus();
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  troupe::Arguments arguments;
  std::vector<std::string> values;
  troupe::FlagParser parser(
      {.name = "troupe-bench-pairs",
       .usage = "troupe-bench-pairs [DELAY_MS [STEPS [HIDDEN]]]",
       .summary = "Measures the exposed time of dispatch and combination in a DualPipeV step; "
                  "prints two JSON lines.",
       .footer = "DELAY_MS: delay of each message in milliseconds, at least 0 (default: 2)\n"
                 "STEPS: steps of a run, at least 2 (default: 4)\n"
                 "HIDDEN: hidden size, at least 16 (default: 256)"});
  parser.AddArguments(0, 3, &values);
  const std::optional<int> ended =
      parser.ParseMain(argc, argv, [&] { return troupe::SetArguments(values, &arguments); });
  if (ended) return *ended;
  troupe::Bench(arguments);
  return 0;
}
