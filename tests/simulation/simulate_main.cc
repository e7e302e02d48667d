// troupe-simulate [--seed N] [--seeds COUNT] [--mix TRAIT] [--bug NAME]: runs simulated clusters,
// seed by seed, and prints a line for each, and the story of each that broke an invariant. Exits
// with 1 if any did.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/simulation/cluster.h"

namespace troupe::simulation {
namespace {

int Main(int argc, char** argv) {
  ClusterOptions options{.seed = 1};
  uint64_t seeds = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const std::string value = argv[i + 1];
    if (flag == "--seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (flag == "--seeds") {
      seeds = std::strtoull(value.c_str(), nullptr, 10);
    } else if (flag == "--mix" && MixOf(value)) {
      options.mix = MixOf(value);
    } else if (flag == "--bug" && value == "forget-leader-epoch") {
      options.shell_bugs.forget_leader_epoch = true;
    } else if (flag == "--bug" && value == "ack-before-durable") {
      options.shell_bugs.ack_before_durable = true;
    } else if (flag == "--bug" && value == "accept-stale-epochs") {
      options.machine_bugs.accept_stale_epochs = true;
    } else if (flag == "--bug" && value == "accept-unasked-answers") {
      options.machine_bugs.accept_unasked_answers = true;
    } else if (flag == "--bug" && value == "charge-lost-hosts") {
      options.machine_bugs.charge_lost_hosts = true;
    } else if (flag == "--bug" && value == "choose-bad-hosts") {
      options.machine_bugs.choose_bad_hosts = true;
    } else if (flag == "--bug" && value == "forget-submitted-layout") {
      options.machine_bugs.forget_submitted_layout = true;
    } else if (flag == "--bug" && value == "never-grow") {
      options.machine_bugs.never_grow = true;
    } else if (flag == "--bug" && value == "quarantine-on-one-word") {
      options.machine_bugs.quarantine_on_one_word = true;
    } else if (flag == "--bug" && value == "trust-folders") {
      options.worker_bugs.trust_folders = true;
    } else if (flag == "--bug" && value == "number-lives-by-clock") {
      options.worker_bugs.number_lives_by_clock = true;
    } else {
      fmt::print(stderr, "unknown argument {} {}\n", flag, value);
      return 2;
    }
  }
  const auto start = std::chrono::steady_clock::now();
  uint64_t broken = 0, events = 0;
  for (uint64_t i = 0; i < seeds; ++i, ++options.seed) {
    const ClusterResult result = RunCluster(options);
    fmt::print(
        "seed {} hash {:016x} events {} virtual {:.0f} s healed in {:.1f} s, {} faults, {} "
        "coordinator starts, {} "
        "steps, {} rows, {} commits, {} deleted, {} restarts, {} shrunk, {} grown: {}\n",
        result.seed, result.hash, result.events, result.virtual_seconds, result.heal_seconds,
        result.faults.size(), result.coordinator_starts, result.steps_applied, result.history_rows,
        result.commits, result.deletions, result.restarts, result.shrinks, result.growths,
        result.ok() ? "holds" : "BROKEN");
    if (!result.ok()) fmt::print("{}", result.story);
    broken += !result.ok();
    events += result.events;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print("{} seeds, {} broken, {} events, {:.2f} s\n", seeds, broken, events, took.count());
  return broken == 0 ? 0 : 1;
}

}  // namespace
}  // namespace troupe::simulation

int main(int argc, char** argv) { return troupe::simulation::Main(argc, argv); }
