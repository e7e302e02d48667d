// Tests steps that are submitted before the previous one has completed: the bits are identical, all
// ranks make the same decisions after the same step, and a non-finite step is undone together with
// the step submitted after it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/emulated/emulated_backend.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

using kernels::EmulatedBackend;
using kernels::cuda::emulator::EmulatedDevice;
using kernels::cuda::emulator::StreamOrder;
using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kSteps = 5;

struct Setting {
  const char* name;
  bool on_device;
  StreamOrder order;
  friend void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }
};

v1::JobSpec Job(const Layout& layout = {}) {
  v1::JobSpec spec = SmallJob(layout, SmallDataPrefix(), kSteps);
  spec.mutable_model()->set_pattern("AD");
  spec.mutable_training()->set_global_batch_size(4);
  return spec;
}

// Returns weights and moments bit by bit.
std::vector<std::byte> StateOf(Executor& executor) {
  std::vector<std::byte> state;
  for (const model::ParameterEntry& entry : executor.program().parameters) {
    for (const model::ValueId value :
         {entry.value, entry.optimizer_states[0], entry.optimizer_states[1]}) {
      std::vector<std::byte> bytes(static_cast<size_t>(executor.program().value(value).bytes()));
      EXPECT_TRUE(executor.executable().Read(value, 0, bytes).ok());
      state.insert(state.end(), bytes.begin(), bytes.end());
    }
  }
  return state;
}

void WriteNan(Executor& executor, model::ValueId value) {
  const std::vector<float> numbers(static_cast<size_t>(executor.program().value(value).elements()),
                                   std::nanf(""));
  ASSERT_TRUE(executor.executable().Write(value, 0, std::as_bytes(std::span(numbers))).ok());
}

class RunAhead : public testing::TestWithParam<Setting> {
 protected:
  // `states` receives each rank's state at its end.
  TrainOptions Options(int64_t lag, std::vector<std::vector<std::byte>>* states) const {
    TrainOptions options;
    options.steps = kSteps;
    options.control_lag_steps = lag;
    if (GetParam().on_device) {
      options.make_backend =
          [order = GetParam().order](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
        return std::make_unique<EmulatedBackend>(order);
      };
    }
    states->resize(2);
    options.after_steps = options.after_failure = [states](int rank, Executor& executor) {
      (*states)[static_cast<size_t>(rank)] = StateOf(executor);
    };
    return options;
  }
  // Makes rank 0's gradients of one step non-finite, and those of the next one finite.
  TrainOptions WithNan(TrainOptions options, int64_t step) const {
    options.before_update = [step](int rank, Executor& executor) {
      if (rank != 0 || executor.submitted_step() + 1 != step) return;
      WriteNan(executor, executor.program().parameters[0].reduced_gradient);
    };
    return options;
  }
  using States = std::vector<std::vector<std::byte>>;
};

TEST_P(RunAhead, HasTheBitsOfARunThatWaitsForEveryStep) {
  v1::JobSpec with_dropout = Job({.data = 2});
  with_dropout.mutable_model()->set_hidden_dropout(0.1);
  v1::JobSpec experts = Mixture({.expert = 2}, kSteps);
  experts.mutable_model()->set_pattern("AE");
  experts.mutable_training()->set_global_batch_size(2);
  const auto is_last = [](size_t index) { return index + 1 == static_cast<size_t>(kSteps); };
  for (const v1::JobSpec& spec : {Job(), with_dropout, experts}) {
    // The host needs the counts of rows that go to experts of the other rank.
    const bool counts_on_host = spec.parallelism().expert_parallel_degree() > 1;
    States states, ahead_states;
    const std::vector<StepResult> expected = RunOrDie(spec, Options(0, &states));
    const std::vector<StepResult> ahead = RunOrDie(spec, Options(1, &ahead_states));
    ExpectIdentical(ahead, expected);
    EXPECT_EQ(ahead_states, states);
    for (size_t i = 0; i < ahead.size() && i < expected.size(); ++i) {
      EXPECT_EQ(ahead[i].figures.host_syncs_per_step() > 0,
                GetParam().on_device && (is_last(i) || counts_on_host))
          << i;
      EXPECT_EQ(expected[i].figures.host_syncs_per_step() > 0, GetParam().on_device);
      EXPECT_EQ(ahead[i].figures.graph_launches_per_step(), !GetParam().on_device ? 0
                                                            : counts_on_host      ? 1
                                                                                  : 2)
          << i;
      EXPECT_EQ(expected[i].figures.graph_launches_per_step(),
                ahead[i].figures.graph_launches_per_step())
          << i;
      EXPECT_EQ(ahead[i].event.tokens(), expected[i].event.tokens());
      EXPECT_EQ(ahead[i].routed, expected[i].routed);
      EXPECT_EQ(ahead[i].expert_load, expected[i].expert_load);
      EXPECT_EQ(ahead[i].event.learning_rate(), expected[i].event.learning_rate());
    }
  }
}

TEST_P(RunAhead, ValidatesAndMeasuresTheStateOfTheStepItStates) {
  v1::JobSpec spec = Job({.data = 2});
  spec.mutable_data()->set_validation_fraction(0.1);
  spec.mutable_training()->set_validation_interval(2);
  spec.mutable_training()->set_validation_samples(4);
  spec.mutable_training()->set_norms_interval(3);
  States states;
  const std::vector<StepResult> expected = RunOrDie(spec, Options(0, &states));
  const std::vector<StepResult> ahead = RunOrDie(spec, Options(1, &states));
  ASSERT_EQ(ahead.size(), expected.size());
  for (size_t i = 0; i < ahead.size(); ++i) {
    EXPECT_EQ(ahead[i].event.validation_loss(), expected[i].event.validation_loss()) << i;
    EXPECT_EQ(ahead[i].event.has_validation_loss(), i != 2) << i;
    EXPECT_EQ(expected[i].event.has_validation_loss(), i != 2) << i;
    ASSERT_EQ(ahead[i].event.norms_size(), expected[i].event.norms_size()) << i;
    EXPECT_EQ(ahead[i].event.norms().empty(), i != 2) << i;
    for (int n = 0; n < ahead[i].event.norms_size(); ++n) {
      EXPECT_EQ(ahead[i].event.norms(n).gradient(), expected[i].event.norms(n).gradient());
      EXPECT_EQ(ahead[i].event.norms(n).parameter(), expected[i].event.norms(n).parameter());
    }
  }
}

TEST_P(RunAhead, AStopThatOneRankKnowsEndsAllAfterTheStepInFlight) {
  for (const int64_t lag : {0, 1}) {
    States states, expected_states;
    TrainOptions options = Options(lag, &states);
    options.inputs = [](int rank, int64_t step) {
      return ControlInputs{.stop = rank == 1 && step >= 2};
    };
    const TrainResult result = Train(Job({.data = 2}), options);
    for (int rank = 0; rank < 2; ++rank) {
      ASSERT_TRUE(result.statuses[rank].ok()) << result.statuses[rank];
      EXPECT_EQ(result.acted_after[rank], std::vector<int64_t>{2 + lag});
      EXPECT_EQ(result.steps[rank].back().step, 2 + lag);
    }
    TrainOptions shorter = Options(0, &expected_states);
    shorter.steps = 2 + lag;
    Train(Job({.data = 2}), shorter);
    EXPECT_EQ(states, expected_states);
  }
}

TEST_P(RunAhead, ACheckpointIsTakenByAllOnceAllKnowThatItIsAskedFor) {
  for (const int64_t lag : {0, 1}) {
    States states;
    TrainOptions options = Options(lag, &states);
    options.inputs = [](int rank, int64_t step) {
      return ControlInputs{.request_attempt = step >= 2 + rank ? 7 : 0};
    };
    const TrainResult result = Train(Job({.data = 2}), options);
    for (int rank = 0; rank < 2; ++rank) {
      ASSERT_TRUE(result.statuses[rank].ok()) << result.statuses[rank];
      EXPECT_EQ(result.acted_after[rank], std::vector<int64_t>{3 + lag});
      EXPECT_EQ(result.steps[rank].size(), static_cast<size_t>(kSteps));
    }
  }
}

TEST_P(RunAhead, NoRankPassesTheTicketThatAnotherOneHas) {
  States states;
  TrainOptions options = Options(1, &states);
  // Rank 1 learns of a later ticket end during step 3, and never of a step's end before it has
  // completed.
  const auto end_known = [](int rank, int64_t step) { return rank == 1 && step < 3 ? 2 : 4; };
  options.inputs = [end_known](int rank, int64_t step) {
    return ControlInputs{.ticket_end = end_known(rank, step)};
  };
  std::array<std::vector<int64_t>, 2> known_at_update;
  options.before_update = [&](int rank, Executor& executor) {
    known_at_update[static_cast<size_t>(rank)].push_back(executor.applied_step());
  };
  RunOrDie(Job({.data = 2}), options);
  // The applied steps known when steps 1 to 5 began: step 3 began after 2, and step 5 after 4.
  for (const std::vector<int64_t>& known : known_at_update) {
    EXPECT_EQ(known, (std::vector<int64_t>{0, 0, 2, 2, 4}));
  }
}

TEST_P(RunAhead, AStepThatIsNotFiniteLeavesTheStateBeforeItAlsoWhereAFiniteOneFollows) {
  States expected_states, states;
  TrainOptions before = Options(0, &expected_states);
  before.steps = 2;
  RunOrDie(Job({.data = 2}), before);
  TrainOptions options = WithNan(Options(1, &states), 3);
  options.after_failure = [keep = options.after_failure](int rank, Executor& executor) {
    EXPECT_EQ(executor.applied_step(), 2);
    EXPECT_EQ(executor.submitted_step(), 4);
    keep(rank, executor);
  };
  const TrainResult result = Train(Job({.data = 2}), options);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(result.statuses[rank].code(), StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(Message(result.statuses[rank])),
                HasSubstr("step 3: loss or gradient of rank 0 is not finite"));
    EXPECT_EQ(result.steps[rank].size(), 2u);
  }
  EXPECT_EQ(states, expected_states);
}

TEST_P(RunAhead, AStepThatIsNotFiniteIsRunAgainToNameWhatIsNot) {
  States states;
  TrainOptions options = Options(1, &states);
  options.before_steps = [](int, Executor& executor) {
    for (const model::ParameterEntry& entry : executor.program().parameters) {
      if (executor.program().value(entry.value).name == "head.norm")
        WriteNan(executor, entry.value);
    }
  };
  const TrainResult result = Train(Job({.data = 2}), options);
  for (const Status& status : result.statuses) {
    EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(Message(status)),
                AllOf(HasSubstr("step 1: rank "),
                      HasSubstr(": the weight model.norm.weight (head) is not finite")));
  }
}

TEST_P(RunAhead, SkipsTheStepThatIsNotFiniteAndNoOther) {
  v1::JobSpec spec = Job({.data = 2});
  spec.mutable_training()->set_on_nonfinite("skip_step");
  States expected_states, states;
  const TrainResult waiting = Train(spec, WithNan(Options(0, &expected_states), 3));
  const TrainResult ahead = Train(spec, WithNan(Options(1, &states), 3));
  const std::vector<StepResult>& expected = waiting.steps[0];
  ASSERT_EQ(expected.size(), static_cast<size_t>(kSteps));
  EXPECT_EQ(states, expected_states);
  for (const std::vector<StepResult>& steps : ahead.steps) {
    ASSERT_EQ(steps.size(), expected.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(steps[i].event.skipped(), i == 2);
      EXPECT_EQ(expected[i].event.skipped(), i == 2);
      EXPECT_EQ(steps[i].event.loss(), expected[i].event.loss());
    }
    EXPECT_EQ(steps[2].nonfinite, "loss or gradient of rank 0 is not finite");
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, RunAhead,
                         testing::Values(Setting{"Cpu", false, {}},
                                         Setting{"ComputeFirst", true, StreamOrder::kComputeFirst},
                                         Setting{"ComputeLast", true, StreamOrder::kComputeLast}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(RunAheadOnADevice, TheHostWaitsForNoStepThatIsInFlight) {
  constexpr int64_t kMore = 8;
  EmulatedDevice* device = nullptr;
  TrainOptions options;
  options.steps = kMore;
  options.control_lag_steps = 1;
  options.make_backend = [&](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    auto backend = std::make_unique<EmulatedBackend>();
    device = &backend->device();
    return backend;
  };
  int64_t waits = -1, graphs = 0;
  options.after_step = [&](int, Executor& executor, const StepResult& result) {
    SCOPED_TRACE(result.step);
    const int64_t in_flight = executor.submitted_step() - result.step;
    EXPECT_EQ(in_flight, result.step < kMore ? 1 : 0);
    // Two graphs per step: no result of a step in flight was needed yet.
    EXPECT_EQ(device->graphs_in_flight(), 2 * in_flight);
    // The host waits once per step, for the completed one.
    if (waits >= 0) {
      EXPECT_EQ(device->host_waits(), waits + 1);
    }
    waits = device->host_waits();
    graphs = device->graph_launches();
    // No step follows the last one.
    EXPECT_EQ(result.figures.host_syncs_per_step(), result.step < kMore ? 0 : 1);
  };
  v1::JobSpec spec = Job();
  spec.mutable_training()->set_steps(kMore);
  RunOrDie(spec, options);
  EXPECT_EQ(graphs, 2 * kMore);
}

}  // namespace
}  // namespace troupe
