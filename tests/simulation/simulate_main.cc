// troupe-simulate: runs simulated clusters, seed by seed, and prints a line for each, and the story
// of each that broke an invariant.
#include <fmt/format.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/flag_parser.h"
#include "tests/simulation/cluster.h"

namespace troupe::simulation {
namespace {

// Returns the switch of each known bug by its name.
std::map<std::string, bool*> BugSwitches(ClusterOptions* options) {
  return {
      {"accept-stale-epochs", &options->machine_bugs.accept_stale_epochs},
      {"accept-unasked-answers", &options->machine_bugs.accept_unasked_answers},
      {"ack-before-durable", &options->shell_bugs.ack_before_durable},
      {"blame-reporting-ranks", &options->machine_bugs.blame_reporting_ranks},
      {"blame-stopped-workers", &options->machine_bugs.blame_stopped_workers},
      {"blame-writers-in-turn", &options->machine_bugs.blame_writers_in_turn},
      {"charge-lost-hosts", &options->machine_bugs.charge_lost_hosts},
      {"choose-bad-hosts", &options->machine_bugs.choose_bad_hosts},
      {"drop-needed-images", &options->machine_bugs.drop_needed_images},
      {"forget-leader-epoch", &options->shell_bugs.forget_leader_epoch},
      {"forget-submitted-layout", &options->machine_bugs.forget_submitted_layout},
      {"never-grow", &options->machine_bugs.never_grow},
      {"number-lives-by-clock", &options->worker_bugs.number_lives_by_clock},
      {"quarantine-on-one-word", &options->machine_bugs.quarantine_on_one_word},
      {"trust-folders", &options->worker_bugs.trust_folders},
  };
}

void AddFlags(FlagParser& parser, ClusterOptions* options, uint64_t* seeds,
              std::optional<int>* lost_mounts) {
  parser.AddNumber({"--seed", "N", "the first seed"}, {0}, &options->seed);
  parser.AddNumber({"--seeds", "COUNT", "seeds to run"}, {0}, seeds);
  parser.AddParsed({"--mix", "TRAIT",
                    "runs the usual faults and one trait only, such as bad-hosts, stranger or "
                    "plain (default: the traits that the seed draws)"},
                   [options](const std::string& trait) -> Status {
                     options->mix = MixOf(trait);
                     if (options->mix) return OkStatus();
                     return InvalidArgument("--mix {}: not the name of a trait", trait);
                   });
  parser.AddOptionalNumber(
      {"--lost-mounts", "COUNT", "with --mix: how often a host loses the mount of its folder"}, {0},
      lost_mounts);
  const std::map<std::string, bool*> bugs = BugSwitches(options);
  std::string names;
  for (const auto& [name, bug] : bugs) names += (names.empty() ? "" : ", ") + name;
  parser.AddParsed({"--bug", "NAME", "puts a known bug into the cluster: " + names, true},
                   [bugs](const std::string& name) -> Status {
                     const auto bug = bugs.find(name);
                     if (bug == bugs.end()) {
                       return InvalidArgument("--bug {}: not the name of a bug", name);
                     }
                     *bug->second = true;
                     return OkStatus();
                   });
}

int Main(int argc, char** argv) {
  ClusterOptions options{.seed = 1};
  uint64_t seeds = 1;
  FlagParser parser(
      {.name = "troupe-simulate",
       .usage = "troupe-simulate [FLAG …]",
       .summary = "Runs simulated clusters, seed by seed, and prints a line for each, "
                  "and the story of each that broke an invariant.",
       .footer = "Exit codes: 0 every invariant held, 1 one was broken, 2 wrong usage."});
  std::optional<int> lost_mounts;
  AddFlags(parser, &options, &seeds, &lost_mounts);
  if (const std::optional<int> ended = parser.ParseMain(argc, argv)) return *ended;
  if (lost_mounts && !options.mix) {
    fmt::print(stderr, "--lost-mounts {}: needs --mix\n", *lost_mounts);
    return 2;
  }
  if (lost_mounts) options.mix->lost_mounts = *lost_mounts;
  const auto start = std::chrono::steady_clock::now();
  uint64_t broken = 0, events = 0;
  for (uint64_t i = 0; i < seeds; ++i, ++options.seed) {
    const ClusterResult result = RunCluster(options);
    fmt::print(
        "seed {} hash {:016x} events {} virtual {:.0f} s healed in {:.1f} s, {} faults, {} "
        "coordinator starts, {} "
        "steps, {} rows, {} commits, {} deleted, {} restarts, {} shrunk, {} grown, {} moved: {}\n",
        result.seed, result.hash, result.events, result.virtual_seconds, result.heal_seconds,
        result.faults.size(), result.coordinator_starts, result.steps_applied, result.history_rows,
        result.commits, result.deletions, result.restarts, result.shrinks, result.growths,
        result.moves, result.ok() ? "holds" : "BROKEN");
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
