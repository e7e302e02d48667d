#include "actor/sim/faults.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/check.h"

namespace troupe {

FaultInjector::FaultInjector(SimulatedSystem& system, NodeId hub, std::vector<NodeId> leaves,
                             FaultOptions options)
    : system_(system),
      hub_(hub),
      leaves_(std::move(leaves)),
      options_(std::move(options)),
      random_(options.seed, "faults") {
  TROUPE_CHECK(!leaves_.empty());
}

void FaultInjector::Begin() {
  end_ = system_.Now() + options_.phase;
  system_.network().SetLoss(options_.loss);
  system_.network().SetDuplication(options_.duplication);
  system_.Schedule(options_.phase, [this] { Heal(); });
  DrawNext();
}

void FaultInjector::DrawNext() {
  const double uniform = (static_cast<double>(random_.Below(1'000'000)) + 1) / 1'000'001;
  const Duration wait = FromSeconds(-std::log(uniform) * ToSeconds(options_.mean_between));
  if (system_.Now() + wait >= end_) return;
  system_.Schedule(wait, [this] {
    Strike();
    DrawNext();
  });
}

Duration FaultInjector::Length() {
  // Log-uniform, so that short faults are as likely as long ones.
  const double low = std::log(ToSeconds(options_.min_length));
  const double high = std::log(ToSeconds(options_.max_length));
  const double uniform = static_cast<double>(random_.Below(1'000'001)) / 1'000'000;
  return FromSeconds(std::exp(low + (high - low) * uniform));
}

NodeId FaultInjector::Leaf() { return leaves_[random_.Below(leaves_.size())]; }

void FaultInjector::Log(const std::string& line) {
  log_.push_back(fmt::format("{:.6f} {}", ToSeconds(system_.Now().time_since_epoch()), line));
}

void FaultInjector::CrashFor(NodeId node, CrashKind kind, Duration length) {
  Log(fmt::format("crash {} {} for {:.3f} s", system_.NodeName(node),
                  kind == CrashKind::kHost ? "host" : "process", ToSeconds(length)));
  system_.Crash(node, kind);
  system_.Schedule(length, [this, node] { Restart(node); });
}

void FaultInjector::Restart(NodeId node) {
  if (!left_.contains(node)) system_.Start(node);
}

void FaultInjector::AwaitCrash(MonotonicTime until, Duration length) {
  if (!system_.IsUp(hub_)) {
    system_.Schedule(length, [this] { system_.Start(hub_); });
  } else if (system_.Now() >= until) {
    system_.CancelCrashAtWrite(hub_);
  } else {
    system_.Schedule(options_.min_length, [this, until, length] { AwaitCrash(until, length); });
  }
}

void FaultInjector::BlockFor(NodeId from, NodeId to, Duration length) {
  system_.network().Block(from, to);
  const uint64_t fault = next_fault_++;
  undo_[fault] = [this, from, to] { system_.network().Unblock(from, to); };
  system_.Schedule(length, [this, fault] {
    const auto undo = undo_.find(fault);
    if (undo == undo_.end()) return;
    undo->second();
    undo_.erase(undo);
  });
}

void FaultInjector::CrashHub() {
  CrashFor(hub_, random_.Chance(0.5) ? CrashKind::kProcess : CrashKind::kHost, Length());
}

void FaultInjector::CrashHubAtWrite() {
  const WriteCrash where = random_.Chance(0.5) ? WriteCrash::kBefore : WriteCrash::kDurable;
  const Duration length = Length();
  const std::string& prefix =
      options_.write_prefixes[random_.Below(options_.write_prefixes.size())];
  Log(fmt::format("crash {} {} its next write of {}*, for {:.3f} s", system_.NodeName(hub_),
                  where == WriteCrash::kBefore ? "before" : "after", prefix, ToSeconds(length)));
  system_.CrashAtNextWrite(hub_, where, prefix);
  AwaitCrash(system_.Now() + options_.max_length, length);
}

void FaultInjector::CrashLeaf() {
  CrashFor(Leaf(), random_.Chance(0.7) ? CrashKind::kProcess : CrashKind::kHost, Length());
}

void FaultInjector::IsolateLeaf() {
  const NodeId leaf = Leaf();
  const Duration length = Length();
  Log(fmt::format("isolate {} for {:.3f} s", system_.NodeName(leaf), ToSeconds(length)));
  BlockFor(leaf, hub_, length);
  BlockFor(hub_, leaf, length);
}

void FaultInjector::BlockOneWay() {
  const NodeId leaf = Leaf();
  const bool up = random_.Chance(0.5);
  const NodeId from = up ? leaf : hub_;
  const NodeId to = up ? hub_ : leaf;
  const Duration length = Length();
  Log(fmt::format("block {} to {} for {:.3f} s", system_.NodeName(from), system_.NodeName(to),
                  ToSeconds(length)));
  BlockFor(from, to, length);
}

void FaultInjector::IsolateHub() {
  const Duration length = Length();
  Log(fmt::format("isolate {} for {:.3f} s", system_.NodeName(hub_), ToSeconds(length)));
  for (const NodeId leaf : leaves_) {
    BlockFor(leaf, hub_, length);
    BlockFor(hub_, leaf, length);
  }
}

void FaultInjector::SlowNode() {
  const NodeId node = random_.Chance(0.3) ? hub_ : Leaf();
  const Duration length = Length();
  const Duration slowness = random_.Between(Duration(0), options_.max_slowness);
  Log(fmt::format("slow {} by up to {:.3f} s for {:.3f} s", system_.NodeName(node),
                  ToSeconds(slowness), ToSeconds(length)));
  system_.network().SetSlowness(node, slowness);
  system_.Schedule(length, [this, node] { system_.network().SetSlowness(node, Duration(0)); });
}

void FaultInjector::BreakStream() {
  const NodeId leaf = Leaf();
  Log(fmt::format("break {}", system_.NodeName(leaf)));
  system_.network().BreakBetween(leaf, hub_);
}

void FaultInjector::LoseLeaf() {
  const NodeId leaf = Leaf();
  Log(fmt::format("{} leaves for good", system_.NodeName(leaf)));
  left_.insert(leaf);
  system_.Crash(leaf, CrashKind::kHost);
}

void FaultInjector::ShiftClock() {
  const NodeId node = random_.Chance(0.3) ? hub_ : Leaf();
  const Duration limit = options_.max_clock_shift;
  const Duration shift = random_.Between(-limit, limit);
  Log(fmt::format("shift the clock of {} by {:.3f} s", system_.NodeName(node), ToSeconds(shift)));
  system_.ShiftWallClock(node, shift);
}

void FaultInjector::Strike() {
  const FaultOptions::Weights& weights = options_.weights;
  const bool may_leave = static_cast<int>(left_.size()) < options_.max_leavers;
  const std::pair<int, void (FaultInjector::*)()> faults[] = {
      {weights.crash_hub, &FaultInjector::CrashHub},
      {weights.crash_hub_write, &FaultInjector::CrashHubAtWrite},
      {weights.crash_leaf, &FaultInjector::CrashLeaf},
      {weights.isolate_leaf, &FaultInjector::IsolateLeaf},
      {weights.one_way, &FaultInjector::BlockOneWay},
      {weights.isolate_hub, &FaultInjector::IsolateHub},
      {weights.slow_node, &FaultInjector::SlowNode},
      {weights.break_stream, &FaultInjector::BreakStream},
      {may_leave ? weights.leave_leaf : 0, &FaultInjector::LoseLeaf},
      {weights.shift_clock, &FaultInjector::ShiftClock},
  };
  int total = 0;
  for (const auto& [weight, strike] : faults) total += weight;
  if (total == 0) return;
  int drawn = static_cast<int>(random_.Below(static_cast<uint64_t>(total)));
  for (const auto& [weight, strike] : faults) {
    if (drawn < weight) {
      (this->*strike)();
      return;
    }
    drawn -= weight;
  }
}

void FaultInjector::Heal() {
  healed_ = true;
  Log("heal");
  system_.network().SetLoss(0);
  system_.network().SetDuplication(0);
  for (const auto& [fault, undo] : undo_) undo();
  undo_.clear();
  std::vector<NodeId> nodes = leaves_;
  nodes.push_back(hub_);
  for (const NodeId node : nodes) {
    system_.network().SetSlowness(node, Duration(0));
    system_.CancelCrashAtWrite(node);
    Restart(node);
  }
}

}  // namespace troupe
