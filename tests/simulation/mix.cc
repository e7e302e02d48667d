#include "tests/simulation/mix.h"

#include <fmt/format.h>

#include "actor/sim/random.h"

namespace troupe::simulation {
namespace {

// Each kind of fault is absent in one run of four and twice as frequent in another.
int DrawWeight(SeededRandom& random, int usual) {
  const uint64_t drawn = random.Below(4);
  return drawn == 0 ? 0 : drawn == 1 ? 2 * usual : usual;
}

double DrawChance(SeededRandom& random, double usual) {
  return static_cast<double>(DrawWeight(random, 1)) * usual;
}

// Only hosts are lost, because a rank that crashes or hangs by itself may be the job's own fault.
void LoseHostsAlone(Mix& mix) {
  mix.crash_per_step = 0;
  mix.hang_per_step = 0;
}

}  // namespace

Mix DrawMix(uint64_t seed) {
  SeededRandom random(seed, "mix");
  Mix mix;
  FaultOptions::Weights& weights = mix.weights;
  for (int* weight :
       {&weights.crash_hub, &weights.crash_hub_write, &weights.crash_leaf, &weights.isolate_leaf,
        &weights.one_way, &weights.isolate_hub, &weights.slow_node, &weights.break_stream}) {
    *weight = DrawWeight(random, *weight);
  }
  weights.leave_leaf = DrawWeight(random, 1);
  weights.shift_clock = DrawWeight(random, 1);
  for (double* chance :
       {&mix.crash_per_step, &mix.hang_per_step, &mix.shard_failure, &mix.unreadable_commit}) {
    *chance = DrawChance(random, *chance);
  }
  mix.layout_changes = random.Chance(0.3);
  // In a small cluster the capacity for a job varies.
  mix.workers = random.Chance(mix.layout_changes ? 0.7 : 0.2) ? 10 : 64;
  if (mix.workers < 20) mix.longest_fault = 6;
  mix.max_leavers = static_cast<int>(random.Below(static_cast<uint64_t>(mix.workers) / 5 + 1));
  mix.corruption = random.Chance(0.3);
  const bool spares = mix.workers >= 20;
  mix.bad_hosts = spares && random.Chance(0.3) ? 1 + static_cast<int>(random.Below(3)) : 0;
  mix.small_budgets = mix.bad_hosts == 0 && random.Chance(0.3);
  mix.stranger = random.Chance(0.3);
  mix.resumes = random.Chance(0.3);
  mix.catalog_loss = random.Chance(0.08);
  mix.altered_requests = !mix.catalog_loss && random.Chance(0.2);
  if (mix.small_budgets) LoseHostsAlone(mix);
  mix.lost_mounts = random.Chance(0.25) ? 1 + static_cast<int>(random.Below(4)) : 0;
  mix.private_folders = random.Chance(0.15);
  // Drawn apart, so that they change nothing else of a seed.
  SeededRandom hangs(seed, "hung writes of the mix");
  if (hangs.Chance(0.15)) mix.hung_writes = 1 + static_cast<int>(hangs.Below(4));
  SeededRandom stops(seed, "planned stops of the mix");
  if (stops.Chance(0.25)) mix.planned_stops = 1 + static_cast<int>(stops.Below(8));
  SeededRandom drains(seed, "drains of the mix");
  mix.drains = mix.planned_stops > 0 && drains.Chance(0.5);
  // Deleting a job forgets its request ids, and its data in the folder stay.
  if (mix.catalog_loss || mix.altered_requests) return mix;
  mix.deletions = random.Chance(0.2);
  if (random.Chance(0.15)) mix.keep_ended.count = static_cast<int64_t>(random.Below(3));
  return mix;
}

std::optional<Mix> MixOf(std::string_view trait) {
  Mix mix;
  if (trait == "plain" || trait == "asynchronous-saves") return mix;
  if (trait == "bad-hosts") {
    mix.bad_hosts = 3;
    LoseHostsAlone(mix);
  } else if (trait == "lost-mounts") {
    mix.lost_mounts = 4;
  } else if (trait == "hung-writes") {
    // Whatever is blamed on a host for its writes is then their hang.
    mix.hung_writes = 6;
    mix.shard_failure = 0;
    LoseHostsAlone(mix);
  } else if (trait == "hangs") {
    mix.hang_per_step = 0.003;
  } else if (trait == "slow-saves") {
    mix.slow_saves = true;
  } else if (trait == "short-final-saves") {
    mix.short_final_saves = true;
    mix.resumes = true;
    mix.shard_failure = 0.3;
  } else if (trait == "planned-stops") {
    mix.planned_stops = 8;
  } else if (trait == "drains") {
    mix.planned_stops = 8;
    mix.drains = true;
  } else if (trait == "private-folders") {
    mix.private_folders = true;
  } else if (trait == "stranger") {
    mix.stranger = true;
  } else if (trait == "layout-changes") {
    mix.layout_changes = true;
    // Few hosts, some of which are away for a long time.
    mix.workers = 8;
    mix.longest_fault = 8;
    mix.weights.crash_leaf = 12;
  } else if (trait == "leavers") {
    mix.weights.leave_leaf = 2;
    mix.max_leavers = 8;
  } else if (trait == "clocks") {
    mix.workers = 12;
    mix.weights.shift_clock = 6;
    mix.weights.crash_leaf = 6;
  } else if (trait == "small-budgets") {
    mix.small_budgets = true;
    mix.workers = 24;
    mix.weights.crash_leaf = 9;
    LoseHostsAlone(mix);
  } else if (trait == "resumes") {
    mix.resumes = true;
  } else if (trait == "catalog-loss") {
    mix.catalog_loss = true;
  } else if (trait == "altered-requests") {
    mix.altered_requests = true;
  } else if (trait == "deletions") {
    mix.deletions = true;
  } else if (trait == "quotas") {
    mix.quotas = true;
  } else if (trait == "few-ended-kept") {
    mix.keep_ended.count = 1;
  } else {
    return std::nullopt;
  }
  return mix;
}

std::string Mix::Text() const {
  std::string text = fmt::format("{} workers", workers);
  const auto also = [&text](bool there, const std::string& what) {
    if (there) text += ", " + what;
  };
  also(bad_hosts > 0, fmt::format("{} bad hosts", bad_hosts));
  also(lost_mounts > 0, fmt::format("{} lost mounts", lost_mounts));
  also(hung_writes > 0, fmt::format("{} hung writes", hung_writes));
  also(planned_stops > 0, fmt::format("{} planned stops", planned_stops));
  also(drains, "drains");
  also(slow_saves, "slow saves");
  also(short_final_saves, "short final saves");
  also(private_folders, "private folders");
  also(stranger, "a stranger");
  also(layout_changes, "layout changes");
  also(small_budgets, "small budgets");
  also(resumes, "resumes");
  also(catalog_loss, "a lost catalog");
  also(corruption, "corruption");
  also(altered_requests, "altered requests");
  also(deletions, "deletions");
  also(quotas, "quotas");
  if (keep_ended.count) text += fmt::format(", {} ended jobs kept", *keep_ended.count);
  return text;
}

}  // namespace troupe::simulation
